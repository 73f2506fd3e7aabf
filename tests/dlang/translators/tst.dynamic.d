/* A translator gives a struct's members other names and values. */
#pragma D option quiet

struct in {
	int a;
	int b;
};

struct out {
	int sum;
	long twice;
	string name;
};

translator struct out < struct in *i > {
	sum = i->a + i->b;
	twice = i->a * 2;
	name = i->b > 3 ? "large" : "small";
};

BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->a = 3;
	this->p->b = 4;
	printf("%d %d %s\n", xlate <struct out>(this->p).sum, xlate <struct out>(this->p).twice,
	    xlate <struct out>(this->p).name);
	printf("%d\n", xlate <struct out *>(this->p)->sum);
	exit(0);
}
