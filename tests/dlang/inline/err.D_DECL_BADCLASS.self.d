/* Inlines have no scope. */
inline self int x = 1;

BEGIN
{
	exit(0);
}
