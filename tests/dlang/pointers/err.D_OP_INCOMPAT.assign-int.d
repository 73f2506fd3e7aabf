/* Nor the other way round. */
BEGIN
{
	p = (int *)8;
	p = 5;
}
