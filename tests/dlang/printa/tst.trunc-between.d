/* Actions on aggregations are done in order when the records are consumed. */
#pragma D option quiet

BEGIN
{
	@a["x"] = sum(1);
	@a["y"] = sum(2);
	printa("%s %@d\n", @a);
	trunc(@a, 1);
	printf("-\n");
	printa("%s %@d\n", @a);
	normalize(@a, 2);
	printa("%s %@d\n", @a);
	clear(@a);
	printa("%s %@d\n", @a);
	trunc(@a);
	printa("%s %@d\n", @a);
	exit(0);
}
