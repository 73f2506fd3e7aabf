/* NULL is 0, and goes with integers and pointers. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", NULL, NULL == 0, (char *)NULL == NULL);
	exit(0);
}
