/* aggsortrev: the other way round, keys as well. */
#pragma D option quiet
#pragma D option aggsortrev

BEGIN
{
	@a["a"] = sum(1);
	@a["b"] = sum(1);
	@a["c"] = sum(2);
	exit(0);
}
END { printa("%s", @a); printf("\n"); }
