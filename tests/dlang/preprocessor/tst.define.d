/* -C: macros of C. */
/* @options: -C */
#pragma D option quiet
#define ANSWER 42
#define ADD(a, b) ((a) + (b))
#define TEXT "text"

BEGIN
{
	printf("%d %d %s\n", ANSWER, ADD(ANSWER, 1) * 2, TEXT);
	exit(0);
}
