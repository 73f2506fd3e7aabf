/*
 * A library that is about a provider which is not there is left out, and those that need it.
 * @options: -L HERE/absent.lib
 */
BEGIN
{
	trace(UPON);
}
