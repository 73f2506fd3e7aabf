/* An array has no value as a whole. */
BEGIN
{
	a[1] = 1;
	x = a + 1;
}
