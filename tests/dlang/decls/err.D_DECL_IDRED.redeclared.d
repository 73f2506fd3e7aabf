/* An array is no scalar. */
int a[int];
int a;

BEGIN
{
	exit(0);
}
