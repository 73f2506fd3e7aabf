/* += neither. */
BEGIN
{
	a = "a";
	a += "b";
}
