/* A union is as large as its largest member and as aligned as its strictest. */
#pragma D option quiet

union a {
	char c[9];
	int i;
};

union b {
	char c;
	short s;
};

union c {
	struct {
		long x;
		char y;
	} s;
	char c[3];
};

BEGIN
{
	printf("%d %d %d\n", sizeof (union a), sizeof (union b), sizeof (union c));
	printf("%d %d\n", offsetof(union a, i), offsetof(union c, c));
	exit(0);
}
