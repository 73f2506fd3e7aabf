/* -D and -U. */
/* @options: -C -DFIRST -DSECOND=7 -DTHIRD=3 -UTHIRD */
#pragma D option quiet

BEGIN
{
#ifdef FIRST
	printf("first ");
#endif
	printf("%d ", SECOND);
#ifdef THIRD
	printf("third ");
#endif
	printf("\n");
	exit(0);
}
