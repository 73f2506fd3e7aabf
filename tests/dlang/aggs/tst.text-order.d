/* Text is compared byte by byte. */
#pragma D option quiet

BEGIN
{
	@a["b"] = count();
	@a["B"] = count();
	@a["ba"] = count();
	@a[""] = count();
	@a["\377"] = count();
	exit(0);
}
END { printa("[%s]", @a); printf("\n"); }
