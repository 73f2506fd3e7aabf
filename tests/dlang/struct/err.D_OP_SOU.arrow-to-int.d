/* What integers' pointers point to has none either. */
BEGIN
{
	this->p = (int *)alloca(8);
	trace(this->p->a);
}
