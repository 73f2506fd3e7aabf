/* unsigned is said once. */
unsigned unsigned x;

BEGIN
{
	exit(0);
}
