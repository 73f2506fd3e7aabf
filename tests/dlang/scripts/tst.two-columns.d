/* Two aggregations side by side, of which one misses a key. */
#pragma D option quiet

BEGIN
{
	@reads["a"] = sum(10); @reads["b"] = sum(20); @reads["c"] = sum(5);
	@writes["b"] = sum(7); @writes["d"] = sum(1);
	printf("%-4s %6s %6s\n", "FS", "READS", "WRITES");
	printa("%-4s %@6d %@6d\n", @reads, @writes);
	exit(0);
}
