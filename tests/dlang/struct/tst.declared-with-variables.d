/* A definition may declare variables at once. */
#pragma D option quiet

struct s { int a; } x, *y;
union u { int i; char c[4]; } v;
enum e { A, B } w;

BEGIN
{
	x.a = 4;
	y = (struct s *)alloca(sizeof (struct s));
	y->a = 5;
	v.i = 0x41424344;
	w = B;
	printf("%d %d %c %d\n", x.a, y->a, v.c[1], w);
	exit(0);
}
