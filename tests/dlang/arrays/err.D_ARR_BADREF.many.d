/* An array of C has one index. */
int a[5];

BEGIN
{
	a[1, 2] = 3;
}
