/* It does not know itself. */
inline int x = x + 1;

BEGIN
{
	exit(0);
}
