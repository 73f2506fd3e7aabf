/* Nor is what is found by other operations than +. */
BEGIN
{
	p = (int *)alloca(8);
	*(p - 1) = 5;
}
