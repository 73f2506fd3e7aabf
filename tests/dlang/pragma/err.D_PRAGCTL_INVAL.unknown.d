/* A control line that is none. */
#bogus

BEGIN
{
	exit(0);
}
