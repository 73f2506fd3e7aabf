/* Casts to and from enumerations. */
#pragma D option quiet

enum e { A, B, C };

BEGIN
{
	x = (enum e)2;
	printf("%d %d %d\n", x == C, (int)B, (char)x + 1);
	exit(0);
}
