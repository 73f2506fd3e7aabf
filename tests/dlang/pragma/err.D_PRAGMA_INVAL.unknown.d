/* A pragma of D that is none. */
#pragma D nosuchpragma x

BEGIN
{
	exit(0);
}
