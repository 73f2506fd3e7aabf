/* Pointers are not multiplied. */
BEGIN
{
	p = (char *)8;
	trace(p * 2);
}
