/* A key is not void. */
int a[void];

BEGIN
{
	exit(0);
}
