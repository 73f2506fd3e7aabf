/* Of built-in variables. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d\n", sizeof (arg0), sizeof (timestamp), sizeof (pid), sizeof (uid));
	printf("%d %d %d\n", sizeof (epid), sizeof (execname), sizeof (stackdepth));
	exit(0);
}
