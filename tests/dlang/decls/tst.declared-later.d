/* A declaration counts for the clauses before it, and so does an inline. */
#pragma D option quiet

BEGIN
{
	x = 300;
	printf("%d %d %d\n", x, sizeof (x), FIVE);
	exit(0);
}

uint8_t x;
inline int FIVE = 5;
