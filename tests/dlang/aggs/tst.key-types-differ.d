/* Uses of an aggregation may give a key several types: rows have those of the widest, and the same number is the same
   row. */
#pragma D option quiet

BEGIN
{
	@a[(unsigned char)255] = count(); @a[-1] = count(); @a[255] = count();
	@b[-1] = sum(1); @b[(int64_t)-1] = sum(1); @b[(char)-1] = sum(1);
	@c[-1] = count(); @c[0xffffffff] = count();
	@d["x", (short)3] = count(); @d["x", 3] = count(); @d["x", 70000] = count();
	exit(0);
}
