/* The guest has nothing there. */
#pragma D option quiet

BEGIN
{
	tracemem(16, 8);
}

BEGIN
{
	printf("next\n");
	exit(0);
}
