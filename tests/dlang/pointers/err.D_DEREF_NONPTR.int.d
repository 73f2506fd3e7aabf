/* An integer points nowhere. */
BEGIN
{
	x = 1;
	trace(*x);
}
