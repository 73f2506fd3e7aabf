/* Only what printa() left is reversed as a whole; its own order is that of its argument. */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option aggsortkey

BEGIN
{
	@a[1] = sum(7);
	@a[2] = sum(6);
	@b[5] = sum(3);
	@c[3] = sum(4);
	printa("%d ", @b);
	exit(0);
}
