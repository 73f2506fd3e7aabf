/* So a division by a parameter is refused by nobody: it faults. */
#pragma D option quiet

inline int ratio[int a, int b] = a / b;

BEGIN
{
	printf("%d\n", ratio[1, 0]);
}

ERROR
{
	printf("fault %d\n", arg4);
	exit(0);
}
