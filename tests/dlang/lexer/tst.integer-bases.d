/* Integer constants are decimal, octal or hexadecimal, in either case. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d\n", 10, 010, 0x10, 0X1f, 0xABCDEF);
	printf("%d %d %d\n", 0, 00, 0x0);
	exit(0);
}
