/* Nothing is known about a struct that is only declared. */
struct opaque;

BEGIN
{
	this->p = (struct opaque *)0;
	trace(this->p->a);
}
