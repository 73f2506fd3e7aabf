/* Sizes of types that scripts count with. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int), sizeof (long), sizeof (void *));
	printf("%d %d %d\n", sizeof (uint32_t), sizeof (size_t), sizeof (string));
	exit(0);
}
