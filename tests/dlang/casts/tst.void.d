/* A cast to void throws a value away. */
#pragma D option quiet

BEGIN
{
	x = 1;
	(void) x++;
	printf("%d\n", x);
	exit(0);
}
