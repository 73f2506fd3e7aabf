/* An inline with parameters does not know itself either. */
inline int f[int x] = f[x];

BEGIN
{
	exit(0);
}
