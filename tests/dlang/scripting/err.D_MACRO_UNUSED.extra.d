/* Every argument is used. */
/* @arguments: 1 2 */
BEGIN
{
	trace($1);
}
