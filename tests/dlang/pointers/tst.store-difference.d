/* What a pointer leads to is assigned, however it was computed. */
#pragma D option quiet

BEGIN
{
	p = (int *)alloca(16);
	end = p + 4;
	*(end - 1) = 5;
	*(end - 2) = 6;
	*(end - 2) += 10;
	printf("%d %d\n", p[3], p[2]);
	exit(0);
}
