/* An argument that is missing. */
/* @arguments: 1 */
BEGIN
{
	trace($1 + $2);
}
