/* Members that the translator leaves out are not there, the others are. */
#pragma D option quiet

struct out {
	int a;
	int b;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	b = p->x;
};

BEGIN
{
	this->p = (struct in *)alloca(4);
	this->p->x = 9;
	printf("%d\n", xlate <struct out>(this->p).b);
	exit(0);
}
