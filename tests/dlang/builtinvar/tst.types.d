/* The sizes of their types. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d\n", sizeof (arg0), sizeof (timestamp), sizeof (walltimestamp), sizeof (vtimestamp));
	printf("%d %d %d %d %d\n", sizeof (epid), sizeof (id), sizeof (cpu), sizeof (pid), sizeof (tid));
	printf("%d %d %d\n", sizeof (caller), sizeof (stackdepth), sizeof (curthread));
	printf("%d %d\n", sizeof (probename), sizeof (execname));
	exit(0);
}
