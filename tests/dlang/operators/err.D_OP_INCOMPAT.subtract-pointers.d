/* Pointers to different types have no distance. */
BEGIN
{
	p = (char *)8;
	q = (int *)8;
	trace(p - q);
}
