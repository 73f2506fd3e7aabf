/* Shifts by more than there are bits: as the processor does them. */
#pragma D option quiet

int n;

BEGIN
{
	n = 64;
	printf("%d %d\n", 1 << n, 1 << (n + 1));
	n = -1;
	printf("%d\n", (1 << n) != 0);
	exit(0);
}
