/* Without -q the dump begins on a line of its own, and an empty one follows. */

BEGIN
{
	this->p = (int *)alloca(4);
	*this->p = 1;
	tracemem(this->p, 4);
	exit(0);
}
