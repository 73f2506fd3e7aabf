/* A word that is no type casts nothing. */
BEGIN
{
	x = 1;
	trace((nosuchtype)x);
}
