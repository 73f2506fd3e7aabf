/* Eight keys are the most, of a thread's array, too; an aggregation's keys are not counted. */
#pragma D option quiet
self int unused[int, int, int, int, int, int, int, int, int];

BEGIN
{
	a[1, 2, 3, 4, 5, 6, 7, 8] = 1;
	self->a[1, 2, 3, 4, 5, 6, 7, 8] = 2;
	a[1, 2, 3, 4, 5, 6, 7, 9] = 3;
	@[1, 2, 3, 4, 5, 6, 7, 8, 9] = sum(a[1, 2, 3, 4, 5, 6, 7, 8] + self->a[1, 2, 3, 4, 5, 6, 7, 8]);
	printa("%@d\n", @);
	exit(0);
}
