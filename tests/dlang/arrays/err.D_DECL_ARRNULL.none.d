/* An array needs a size or types of keys. */
int a[];

BEGIN
{
	exit(0);
}
