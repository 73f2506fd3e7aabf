/* A variable is no function. */

BEGIN
{
	x = 1;
	y = x(1);
}
