/* One that is missing. */
#pragma D option bufsize

BEGIN
{
	exit(0);
}
