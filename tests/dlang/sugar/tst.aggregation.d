/* Aggregations inside branches. */
#pragma D option quiet

BEGIN
{
	n = 4;
	if (n % 2 == 0) {
		@c["even"] = count();
	} else {
		@c["odd"] = count();
	}
	printa("%s %@d\n", @c);
	exit(0);
}
