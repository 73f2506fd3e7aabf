/* Which has a value. */
inline void x = 1;

BEGIN
{
	exit(0);
}
