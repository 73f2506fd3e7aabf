/* A word that is no type begins no declaration. */
nosuchtype_t x;

BEGIN
{
	exit(0);
}
