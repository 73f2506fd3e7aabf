/* A thread's variable that was never assigned. */
BEGIN
{
	trace(self->x);
}
