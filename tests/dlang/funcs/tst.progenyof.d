/* A process is its own progeny. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", progenyof(pid));
	printf("%d\n", progenyof(99999));
	exit(0);
}
