/* An array without elements. */
int a[0];

BEGIN
{
	exit(0);
}
