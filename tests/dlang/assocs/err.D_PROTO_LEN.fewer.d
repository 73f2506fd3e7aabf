/* The first use fixes the number of keys. */
BEGIN
{
	a[1, 2] = 3;
	a[1] = 4;
}
