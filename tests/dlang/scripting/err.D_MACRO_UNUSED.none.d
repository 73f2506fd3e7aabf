/* Also if there should be none. */
/* @arguments: 1 */
BEGIN
{
	exit(0);
}
