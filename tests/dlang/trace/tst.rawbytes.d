/* With rawbytes everything that is no number is shown as its bytes. */
#pragma D option quiet
#pragma D option rawbytes
#pragma D option strsize=16

BEGIN
{
	trace("Hello");
	trace(5);
	exit(0);
}
