/* Keys have the columns of their size; text has 50. */
#pragma D option quiet

BEGIN
{
	@a[(char)1, (short)2, 3, (long)4, "five"] = count();
	@b["x", 1] = count();
	exit(0);
}
