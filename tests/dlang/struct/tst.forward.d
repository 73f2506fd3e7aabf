/* A struct may point to one that comes later, and to itself. */
#pragma D option quiet

struct later;

struct first {
	struct later *next;
	struct first *me;
};

struct later {
	int value;
};

BEGIN
{
	printf("%d %d\n", sizeof (struct first), sizeof (struct later));
	this->f = (struct first *)alloca(sizeof (struct first));
	this->f->me = this->f;
	this->f->next = (struct later *)alloca(sizeof (struct later));
	this->f->next->value = 77;
	printf("%d %d\n", this->f->me->me->next->value, this->f->me == this->f);
	exit(0);
}
