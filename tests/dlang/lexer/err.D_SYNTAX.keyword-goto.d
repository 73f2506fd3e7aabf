/* Neither is one that D never uses. */
BEGIN
{
	goto = 1;
}
