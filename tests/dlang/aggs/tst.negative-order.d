/* Values are compared with their sign. */
#pragma D option quiet

BEGIN
{
	@a["plus"] = sum(5);
	@a["minus"] = sum(-5);
	@a["zero"] = sum(0);
	exit(0);
}
END { printa("%s %@d\n", @a); }
