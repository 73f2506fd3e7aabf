/* Nor what comes later. */
inline int x = later + 1;

BEGIN
{
	later = 1;
}
