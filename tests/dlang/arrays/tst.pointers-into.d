/* An array of the program has an address: pointers lead into it, and change it. */
#pragma D option quiet

int a[4];
int *p;

BEGIN
{
	a[0] = 20;
	a[1] = 21;
	p = a;
	q = &a[1];
	printf("%d %d %d %d\n", *p, p[1], *q, q - p);
	p[2] = 22;
	*(q + 2) = 23;
	printf("%d %d %d\n", a[2], a[3], *(a + 1));
	exit(0);
}
