/* Text is not added. */
/* @arguments: '"a b"' */
BEGIN
{
	trace($1 + $1);
}
