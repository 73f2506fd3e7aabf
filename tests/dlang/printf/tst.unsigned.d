/* %u, %x and %o show the argument's bits, as many as it has. */
#pragma D option quiet

BEGIN
{
	printf("%u %u %u %u\n", (char)-1, (short)-1, -1, (long)-1);
	printf("%x %x %x %x\n", (char)-1, (short)-1, -1, (long)-1);
	printf("%X %X\n", 48879, (long)0xabcdef);
	printf("%o %o %o\n", (char)-1, 8, 0);
	exit(0);
}
