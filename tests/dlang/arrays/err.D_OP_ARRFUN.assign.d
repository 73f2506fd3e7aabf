/* An array is not assigned as a whole. */
int a[5];
int b[5];

BEGIN
{
	a = b;
}
