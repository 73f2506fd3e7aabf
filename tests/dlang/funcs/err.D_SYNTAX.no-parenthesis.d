/* A call ends with a parenthesis. */

BEGIN
{
	x = strlen("a";
}
