/* An inline is its expression. */
inline int limit = 5;

BEGIN
{
	limit = 6;
}
