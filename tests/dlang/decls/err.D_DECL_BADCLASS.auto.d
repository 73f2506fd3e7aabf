/* Nor automatic. */
auto int x;

BEGIN
{
	exit(0);
}
