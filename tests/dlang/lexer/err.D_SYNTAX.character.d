/* A character that begins nothing. */
BEGIN
{
	x = 1 ` 2;
}
