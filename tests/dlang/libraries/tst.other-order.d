/*
 * And the other way round.
 * @options: -x libdir=HERE/chain.lib -L HERE/other.lib
 */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", MIDDLE, MORE);
	exit(0);
}
