/*
 * A circle has no first.
 * @options: -L HERE/circle.lib
 * @says: one.d needs two.d needs three.d needs one.d
 */
BEGIN
{
	exit(0);
}
