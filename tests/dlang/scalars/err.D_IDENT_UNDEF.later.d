/* The order of the text counts. */
BEGIN
{
	trace(x);
}

BEGIN
{
	x = 1;
}
