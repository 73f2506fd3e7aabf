/* A thread's array is not assigned as a whole. */
BEGIN
{
	self->a[1] = 2;
	self->a = 1;
}
