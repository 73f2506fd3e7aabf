/* They end with a semicolon. */
int x

BEGIN
{
	exit(0);
}
