/* Enumerations are numbers. */
#pragma D option quiet

enum { ONE = 1, MINUS = -1 };

BEGIN
{
	printf("%d %d %x\n", ONE, MINUS, ONE);
	exit(0);
}
