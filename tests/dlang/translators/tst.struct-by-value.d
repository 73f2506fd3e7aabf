/* The input may be a struct itself, and a translator may have no members. */
#pragma D option quiet

struct in {
	int ii;
	char ic;
};

struct out {
	int myi;
	int myc;
};

struct nothing {
	int n;
};

translator struct out < struct in v > {
	myi = ((struct in)v).ii;
	myc = v.ic;
};

translator struct nothing < struct in *v > {
};

struct in g;

BEGIN
{
	g.ii = 5;
	g.ic = 'c';
	printf("%d %c\n", xlate <struct out>(g).myi, xlate <struct out>(g).myc);
	exit(0);
}
