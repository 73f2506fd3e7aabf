/* The ends of every range can be written. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", 9223372036854775807, -9223372036854775807 - 1);
	printf("%d %u\n", 0xffffffffffffffff, 18446744073709551615u);
	printf("%d %o\n", 01777777777777777777777, 01777777777777777777777);
	printf("%x %d\n", 0x8000000000000000, 0x7fffffffffffffff);
	exit(0);
}
