/* LP64. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int), sizeof (long));
	printf("%d %d %d\n", sizeof (long long), sizeof (void *), sizeof (_Bool));
	printf("%d %d\n", sizeof (float), sizeof (double));
	printf("%d %d %d\n", sizeof (unsigned char), sizeof (signed char), sizeof (unsigned));
	printf("%d %d\n", sizeof (unsigned long long int), sizeof (long unsigned));
	exit(0);
}
