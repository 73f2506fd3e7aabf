/* No integer into a string. */
BEGIN
{
	s = "abc";
	s = 1;
}
