/* Typedefs of typedefs. */
#pragma D option quiet

typedef unsigned char t1;
typedef t1 t2;
typedef t2 t3;
typedef t3 t4[2];

t3 x;
t4 y;

BEGIN
{
	x = 256 + 7;
	y[1] = x;
	printf("%d %d %d\n", x, y[1], sizeof (y));
	exit(0);
}
