/*
 * A folder that is not there has no libraries.
 * @options: -L HERE/nothing.lib
 */
BEGIN
{
	exit(0);
}
