/* Pointers are not shifted. */
BEGIN
{
	p = (char *)8;
	trace(p << 1);
}
