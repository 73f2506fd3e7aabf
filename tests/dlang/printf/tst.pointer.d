/* %p has no 0x before it; ? is a pointer's width. */
#pragma D option quiet

BEGIN
{
	printf("[%p] [%p] [%p]\n", (void *)0x1234, 0xffff, (char *)0);
	printf("[%?p]\n", 0x1234);
	printf("[%-?p]\n", (void *)0x1234);
	printf("[%0?p]\n", (void *)0x1234);
	exit(0);
}
