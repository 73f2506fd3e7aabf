/* Right of the colon no assignment stands without parentheses. */
BEGIN
{
	x = 1;
	x ? x = 2 : x = 3;
}
