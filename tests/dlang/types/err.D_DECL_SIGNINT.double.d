/* Only integers have signs. */
unsigned double x;

BEGIN
{
	exit(0);
}
