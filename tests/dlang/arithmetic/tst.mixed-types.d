/* The wider type wins; of the same width the unsigned one. Nothing is promoted to int before: char + char is char. */
#pragma D option quiet

BEGIN
{
	c = (char)-1;
	u = (uint32_t)1;
	l = (int64_t)-1;
	v = (uint64_t)1;
	printf("%d %d\n", sizeof (c + c), sizeof (c + u));
	printf("%d %d\n", sizeof (l + u), sizeof (l + v));
	printf("%d %d %d\n", c < u, l < u, l < v);
	exit(0);
}
