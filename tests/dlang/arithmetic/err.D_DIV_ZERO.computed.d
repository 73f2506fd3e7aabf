/* A constant that is computed. */
BEGIN
{
	trace(1 / (3 - 3));
}
