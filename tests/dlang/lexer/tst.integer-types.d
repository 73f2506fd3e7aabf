/* A decimal constant is int, long; a hexadecimal or octal one may be unsigned. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", sizeof (2147483647), sizeof (2147483648));
	printf("%d %d\n", sizeof (0x7fffffff), sizeof (0xffffffff));
	printf("%d %d\n", sizeof (0x100000000), sizeof (037777777777));
	printf("%d %d\n", sizeof (4294967295u), sizeof (4294967296u));
	printf("%d\n", -1 < 0xffffffff);
	printf("%d\n", -1 < 4294967295);
	exit(0);
}
