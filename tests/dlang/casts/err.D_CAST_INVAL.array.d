/* Nor to an array. */
BEGIN
{
	p = (char *)8;
	q = (char [4])p;
}
