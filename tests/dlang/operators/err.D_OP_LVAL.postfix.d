/* x++ is a value. */
BEGIN
{
	x = 1;
	x++ = 2;
}
