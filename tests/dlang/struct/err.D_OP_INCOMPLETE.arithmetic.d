/* Pointers to it are not added to. */
struct opaque;

BEGIN
{
	this->p = (struct opaque *)0;
	trace(this->p + 1);
}
