/* A value that is none. */
#pragma D option bufsize=large

BEGIN
{
	exit(0);
}
