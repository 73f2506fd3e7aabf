/* Statements have semicolons between them. */
BEGIN
{
	x = 1
	y = 2;
}
