/* A number ends where its digits do: a word after it is another token. */
BEGIN
{
	trace(12abc);
}
