/* A backslash does not carry a string into the next line. */
BEGIN
{
	x = "ab\
cd";
}
