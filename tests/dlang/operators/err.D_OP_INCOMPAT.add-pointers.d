/* Two pointers have no sum. */
BEGIN
{
	p = (char *)8;
	trace(p + p);
}
