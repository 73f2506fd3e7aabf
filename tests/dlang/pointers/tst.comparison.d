/* Pointers compare as unsigned numbers, with each other and with 0. */
#pragma D option quiet

BEGIN
{
	p = (int *)8;
	q = (int *)0xffffffffffffff00;
	printf("%d %d %d %d\n", p < q, p == q, p != q, q > p);
	printf("%d %d %d\n", p == 0, p != NULL, !p);
	printf("%d %d\n", p && q, p ? 1 : 2);
	v = (void *)8;
	printf("%d\n", v == p);
	exit(0);
}
