/* A family that is none: an illegal operation. */
#pragma D option quiet

BEGIN
{
	trace(inet_ntop(99, alloca(16)));
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
