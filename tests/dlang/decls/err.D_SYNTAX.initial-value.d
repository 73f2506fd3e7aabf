/* A declaration gives no value. */
int x = 5;

BEGIN
{
	exit(0);
}
