/* A variable keeps its first type: no string into an integer. */
BEGIN
{
	x = 1;
	x = "abc";
}
