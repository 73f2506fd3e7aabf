/*
 * What is needed has to be there.
 * @options: -L HERE/missing.lib
 * @says: line 2: no library nowhere.d
 */
BEGIN
{
	exit(0);
}
