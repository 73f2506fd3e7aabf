/* Not even by assignment. */
BEGIN
{
	this->a[1] = 2;
}
