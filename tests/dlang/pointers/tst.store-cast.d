/* Casts of pointers to scratch memory: =, +=, ++, members, elements and whole structs. */
#pragma D option quiet

struct s {
	int a;
	char text[4];
	int bits : 3;
	struct {
		short z;
	} inner;
};

BEGIN
{
	*(int *)alloca(4) = 1;
	p = alloca(sizeof (struct s));
	((struct s *)p)->a = 5;
	((struct s *)p)->a += 7;
	((struct s *)p)->a++;
	((struct s *)p)->text[1] = 'x';
	((struct s *)p)->bits = 2;
	((struct s *)p)->inner.z = 77;
	(&((struct s *)p)->inner)->z--;
	--*(int *)p;
	printf("%d %c %d %d\n", *(int *)p, ((char *)p)[5], ((struct s *)p)->bits, ((struct s *)p)->inner.z);
	this->copy = (struct s *)alloca(sizeof (struct s));
	*this->copy = *(struct s *)p;
	this->copy->a *= 2;
	(*(struct s *)p).a = this->copy->a + 1;
	printf("%d %d %d\n", this->copy->a, ((struct s *)p)->a, this->copy->inner.z);
	exit(0);
}
