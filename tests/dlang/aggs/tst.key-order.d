/* The first key counts most. */
#pragma D option quiet

BEGIN
{
	@a[2, 1] = count();
	@a[1, 2] = count();
	@a[1, 1] = count();
	@a[2, 0] = count();
	exit(0);
}
END { printa("%d%d ", @a); printf("\n"); }
