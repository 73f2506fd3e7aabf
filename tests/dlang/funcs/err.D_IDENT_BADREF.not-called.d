/* A function without its arguments is no value. */

BEGIN
{
	x = strlen;
}
