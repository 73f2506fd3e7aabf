/*
 * Nobody has to use it.
 * @options: -L HERE/absent.lib -q
 */
BEGIN
{
	exit(0);
}
