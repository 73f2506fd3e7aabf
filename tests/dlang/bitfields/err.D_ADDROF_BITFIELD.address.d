/* A bit-field has no address. */
struct bits {
	int a : 3;
	int b : 3;
};

BEGIN
{
	this->p = (struct bits *)alloca(4);
	trace(&this->p->b);
}
