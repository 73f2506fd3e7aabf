/* Memory of a clause may hold a struct, and be copied. */
#pragma D option quiet

struct s { int a; char name[8]; long b; };
BEGIN
{
	this->p = (struct s *)alloca(sizeof (struct s));
	this->p->a = 5; this->p->b = -1; this->p->name[0] = 'o'; this->p->name[1] = 'k';
	this->q = (struct s *)alloca(sizeof (struct s));
	bcopy(this->p, this->q, sizeof (struct s));
	printf("%d %s %d\n", this->q->a, stringof(this->q->name), this->q->b);
	exit(0);
}
