/* A backslash at the end of a line is a blank. */
#pragma D option quiet

BEGIN
{
	x = 1 + \
	    2;
	printf("%d\n", \
x);
	exit(0);
}
