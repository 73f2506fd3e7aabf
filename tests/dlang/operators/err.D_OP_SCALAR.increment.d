/* Strings are no scalars to increment. */
BEGIN
{
	s = "abc";
	s++;
}
