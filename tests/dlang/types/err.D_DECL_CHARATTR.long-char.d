/* char is not long. */
long char x;

BEGIN
{
	x = 1;
}
