/*
 * What a library needs is no mistake of the program that is wrong behind it.
 * @options: -L HERE/chain.lib
 * @says: line 9: syntax error near "2"
 */
BEGIN
{
	trace(SUM);
	trace(1 2);
}
