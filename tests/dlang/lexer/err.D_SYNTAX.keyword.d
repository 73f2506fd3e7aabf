/* The words that C and D keep for themselves are no names. */
BEGIN
{
	while = 1;
}
