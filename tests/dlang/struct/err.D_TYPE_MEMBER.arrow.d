/* Also behind a pointer. */
struct s {
	int a;
};

BEGIN
{
	this->p = (struct s *)alloca(8);
	trace(this->p->b);
}
