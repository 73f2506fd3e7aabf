/* A value may be left unused. */
#pragma D option quiet

BEGIN
{
	strlen("a");
	strjoin("a", "b");
	rand();
	printf("done\n");
	exit(0);
}
