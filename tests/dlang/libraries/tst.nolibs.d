/*
 * Libraries that are not read are not wrong.
 * @options: -L HERE/wrong.lib -x nolibs
 */
BEGIN
{
	exit(0);
}
