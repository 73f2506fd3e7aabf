/* u, l and ll in any case and order choose the first type that fits. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (1), sizeof (1u), sizeof (1L), sizeof (1ul), sizeof (1LL));
	printf("%d %d %d %d\n", 5U, 5lu, 5Ull, 5LLU);
	printf("%d %d\n", -1 < 0u, -1 < 0l);
	exit(0);
}
