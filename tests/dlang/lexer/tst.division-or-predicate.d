/* A slash ends a predicate if a brace, a slash, a semicolon or nothing follows; else it divides. */
#pragma D option quiet

BEGIN
{
	i = 10;
}

BEGIN
/ i / 2 == 5 /
{
	printf("five\n");
}

BEGIN
/i/2 == 5 && (i / 5) / 2 == 1/{
	printf("five again\n");
	exit(0);
}
