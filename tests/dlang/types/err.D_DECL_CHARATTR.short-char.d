/* Nor short. */
short char x;

BEGIN
{
	x = 1;
}
