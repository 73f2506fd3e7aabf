/* Of pointers, arrays and type expressions. */
#pragma D option quiet

struct s {
	char a[3];
	short b;
};

BEGIN
{
	printf("%d %d %d\n", sizeof (struct s), sizeof (struct s *), sizeof (struct s [4]));
	printf("%d %d %d\n", sizeof (int [3][5]), sizeof (char *[7]), sizeof (int (*)[3]));
	printf("%d\n", sizeof (((struct s *)0)->a));
	printf("%d\n", sizeof (*(struct s *)0));
	exit(0);
}
