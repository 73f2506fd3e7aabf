/* A clause that fails leaves nothing of what it printed. */
#pragma D option quiet

BEGIN
{
	printf("lost\n");
	printf("%d\n", *(int *)0);
}

BEGIN
{
	printf("kept\n");
	exit(0);
}
