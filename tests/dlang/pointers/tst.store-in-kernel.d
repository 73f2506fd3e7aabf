/*
 * What a pointer leads to in the kernel is not written.
 * @image: kernel
 */
#pragma D option quiet

int faults;

BEGIN
{
	*(&`calls) = 5;
}

BEGIN
{
	*(int *)&`calls += 1;
}

BEGIN
{
	((struct cpu *)&`cpus[0])->jobs++;
}

BEGIN
{
	printf("%d\n", faults);
	exit(0);
}

ERROR
/arg4 == DTRACEFLT_BADADDR/
{
	faults++;
}
