/* Likewise, with its tag. */
#pragma D option quiet

#pragma D option bufsize=512
#pragma D option strsize=1k
#pragma D option droptags

BEGIN
{
	trace("lost");
}

BEGIN
{
	exit(0);
}
