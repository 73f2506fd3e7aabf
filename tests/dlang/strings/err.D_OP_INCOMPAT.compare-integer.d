/* Nor is an integer equal to any. */
BEGIN
{
	s = "1";
	trace(s == 1);
}
