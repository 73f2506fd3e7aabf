/* Different ones. */
inline int f[int a, int a] = 1;

BEGIN
{
	exit(0);
}
