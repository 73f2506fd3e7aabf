/* A string that is not text is shown as the bytes of its buffer. */
#pragma D option quiet
#pragma D option strsize=8

BEGIN
{
	trace("a\001b");
	exit(0);
}
