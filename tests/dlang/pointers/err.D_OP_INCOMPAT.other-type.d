/* Nor a pointer to something else. */
BEGIN
{
	p = (int *)8;
	p = (char *)8;
}
