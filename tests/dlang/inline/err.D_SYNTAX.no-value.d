/* They have an expression. */
inline int x;

BEGIN
{
	exit(0);
}
