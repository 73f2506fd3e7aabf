/* More than 64 bits. */
/* @arguments: 18446744073709551616 */
BEGIN
{
	trace($1);
}
