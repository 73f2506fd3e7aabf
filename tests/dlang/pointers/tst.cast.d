/* Pointers and integers are cast into each other. */
#pragma D option quiet

BEGIN
{
	p = (char *)0x123456789a;
	printf("%x %x\n", (uintptr_t)p, (uint64_t)p + 1);
	printf("%x\n", (int)(uintptr_t)p);
	q = (int *)p;
	printf("%p %d\n", q, (uintptr_t)q == (uintptr_t)p);
	exit(0);
}
