/* A typedef is another name. */
#pragma D option quiet

typedef int number;
typedef number *pointer;
typedef char text[12];
typedef struct { int a; long b; } pair_t, *pair_p;
typedef unsigned long count_t;

number n;
text t;
pair_t p;

BEGIN
{
	n = 5;
	p.b = 6;
	t[0] = 'o';
	t[1] = 'k';
	printf("%d %d %s\n", n, p.b, t);
	printf("%d %d %d %d %d %d\n", sizeof (number), sizeof (pointer), sizeof (text), sizeof (pair_t),
	    sizeof (pair_p), sizeof (count_t));
	c = (count_t)-1 > 0;
	printf("%d\n", c);
	exit(0);
}
