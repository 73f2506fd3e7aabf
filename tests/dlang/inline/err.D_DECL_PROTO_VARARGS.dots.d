/* As many as are written. */
inline int f[int a, ...] = a;

BEGIN
{
	exit(0);
}
