/* Keys that find no room in aggsize are lost. */
#pragma D option quiet
#pragma D option aggsize=1k

BEGIN
{
	@a["a"] = count();
	@a["b"] = count();
	@a["a"] = count();
	exit(0);
}
