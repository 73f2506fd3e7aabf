/* A size is a constant or a type. */
int n;
int a[n];

BEGIN
{
	exit(0);
}
