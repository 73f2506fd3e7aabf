/* Both sides of a colon have one type. */
BEGIN
{
	x = 1;
	trace(x ? "yes" : 1);
}
