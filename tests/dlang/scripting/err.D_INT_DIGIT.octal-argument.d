/* An argument with a digit too large for octal is no number but text: it cannot be added. */
/* @arguments: 12 */
BEGIN
{
	trace($1 + 08);
}
