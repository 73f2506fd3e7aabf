/* Which type an operation has. */
#pragma D option quiet

BEGIN
{
	i = 1; u = 1u; l = 1L; ul = 1ul; s = (short)1;
	printf("%d %d %d %d\n", sizeof (s + i), sizeof (i + l), sizeof (u + l), sizeof (l + ul));
	printf("%d %d\n", sizeof (s << l), sizeof (l << s));
	printf("%d %d %d\n", sizeof (l == ul), sizeof (!l), sizeof (-l));
	printf("%d %d\n", sizeof (1 ? l : i), sizeof (l ? i : l));
	exit(0);
}
