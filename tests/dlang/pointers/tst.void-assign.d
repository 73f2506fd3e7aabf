/* void * goes with every pointer. */
#pragma D option quiet

BEGIN
{
	p = (int *)8;
	p = (void *)16;
	printf("%p\n", p);
	p = 0;
	printf("%p %d\n", p, p == NULL);
	exit(0);
}
