/* What is divided does not change the order of rows, which is that of what was recorded. */
#pragma D option quiet

BEGIN
{
	@["wide"] = stddev(0); @["wide"] = stddev(90);
	@["narrow"] = stddev(0); @["narrow"] = stddev(80);
	normalize(@, 100);
	printa("%s %@d\n", @);
	exit(0);
}
