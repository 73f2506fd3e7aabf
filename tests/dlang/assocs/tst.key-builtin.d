/* What a probe knows is a key. */
#pragma D option quiet

BEGIN
{
	start[probename] = 1;
	start[probeprov] = 2;
	who[pid, probename] = 3;
	printf("%d %d %d\n", start["BEGIN"], start["dtrace"], who[pid, "BEGIN"]);
	exit(0);
}
