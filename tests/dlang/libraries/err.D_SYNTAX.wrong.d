/*
 * A library is read as programs are.
 * @options: -L HERE/wrong.lib
 * @says: wrong.lib/wrong.d
 */
BEGIN
{
	exit(0);
}
