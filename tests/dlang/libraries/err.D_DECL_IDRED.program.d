/*
 * A program declares nothing that a library has.
 * @options: -L HERE/chain.lib
 */
int MIDDLE;

BEGIN
{
	trace(1 2);
}
