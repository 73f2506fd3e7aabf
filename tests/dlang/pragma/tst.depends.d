/* A provider that is there. */
#pragma D option quiet
#pragma D depends_on provider dtrace

BEGIN
{
	printf("ran\n");
	exit(0);
}
