/* Parameters have names. */
inline int f[int] = 1;

BEGIN
{
	exit(0);
}
