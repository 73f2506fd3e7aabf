/* Four functions of the same keys. */
#pragma D option quiet

BEGIN
{
	i = 10;
	@n["k"] = count(); @lo["k"] = min(i); @hi["k"] = max(i); @av["k"] = avg(i);
	i = 25;
	@n["k"] = count(); @lo["k"] = min(i); @hi["k"] = max(i); @av["k"] = avg(i);
	printa("%s %@d %@d %@d %@d\n", @n, @lo, @hi, @av);
	exit(0);
}
