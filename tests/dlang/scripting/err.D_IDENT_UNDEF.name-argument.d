/* A word is a name. */
/* @arguments: nosuch */
BEGIN
{
	trace($1);
}
