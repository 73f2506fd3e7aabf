/* min() and max(). */
#pragma D option quiet

BEGIN
{
	@low = min(5);
	@high = max(5);
	@low = min(-3);
	@high = max(-3);
	@low = min(7);
	@high = max(7);
	exit(0);
}
