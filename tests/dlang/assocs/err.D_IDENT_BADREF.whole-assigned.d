/* Nor is it assigned. */
BEGIN
{
	a[1] = 1;
	a = 2;
}
