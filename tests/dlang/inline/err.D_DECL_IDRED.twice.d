/* Defined once. */
inline int x = 1;
inline int x = 2;

BEGIN
{
	exit(0);
}
