/* A bracket too many. */
BEGIN
{
	x[1]] = 1;
}
