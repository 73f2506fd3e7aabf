/* D does not join adjacent strings. */
BEGIN
{
	trace("a" "b");
}
