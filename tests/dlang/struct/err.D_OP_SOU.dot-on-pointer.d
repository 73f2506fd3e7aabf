/* A pointer's members are behind an arrow. */
struct s {
	int a;
};

BEGIN
{
	this->p = (struct s *)alloca(8);
	trace(this->p.a);
}
