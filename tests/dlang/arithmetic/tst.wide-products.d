/* Products keep 64 bits. */
#pragma D option quiet

BEGIN
{
	a = (int64_t)3037000499;
	printf("%d\n", a * a);
	b = (uint64_t)4294967296;
	printf("%d %d\n", b * b, b * (b - 1));
	exit(0);
}
