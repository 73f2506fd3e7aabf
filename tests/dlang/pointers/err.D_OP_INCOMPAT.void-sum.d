/* Nor is void added to. */
BEGIN
{
	p = (void *)8;
	trace(p + 1);
}
