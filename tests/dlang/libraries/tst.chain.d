/*
 * Libraries are read before the programs, each behind those that it needs, whatever its name.
 * @options: -L HERE/chain.lib
 */
#pragma D option quiet

pair_t p;

BEGIN
{
	p = xlate <pair_t> (5);
	printf("%d %d %d\n", MIDDLE, SUM, p.x + p.y);
	exit(0);
}
