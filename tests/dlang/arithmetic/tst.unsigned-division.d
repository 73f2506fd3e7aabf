/* An unsigned operand makes division unsigned, in as many bits as the result's type has. */
#pragma D option quiet

BEGIN
{
	big = (uint64_t)0xfffffffffffffff9;
	printf("%d %d\n", big / 2, big % 10);
	negative = (int64_t)-7;
	printf("%d\n", negative / big);
	printf("%d\n", negative / 2);
	exit(0);
}
