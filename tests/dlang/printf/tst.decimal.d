/* %d takes its sign and its size from the argument, %i its size. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", (char)-1, (short)-2, -3);
	printf("%d %d\n", -4L, -5LL);
	printf("%d %d\n", (unsigned char)200, (unsigned short)60000);
	printf("%d %d\n", (unsigned int)4000000000, (uint64_t)0xfffffffffffffff0);
	printf("%i %i\n", -6, (unsigned int)0xffffffff);
	exit(0);
}
