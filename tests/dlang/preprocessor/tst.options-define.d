/* The same as options. */
/* @options: -x cpp -x define=N=5 -x undef=M */
#pragma D option quiet

BEGIN
{
	printf("%d\n", N);
	exit(0);
}
