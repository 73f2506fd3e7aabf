/* An int as a key of an array is compared with all its bits; a key of an aggregation has the type's size. */
#pragma D option quiet

int i;

BEGIN
{
	w = (int64_t)1 << 32; i = w;
	a[i] = 1; a[0] = 2;
	printf("%d %d\n", a[i], a[0]);
	@[i] = count(); @[0] = count();
	printa("%d %@d\n", @);
	exit(0);
}
