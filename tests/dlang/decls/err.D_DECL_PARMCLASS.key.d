/* Keys have no storage class. */
int a[static int];

BEGIN
{
	exit(0);
}
