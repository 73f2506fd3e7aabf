/* The expression has the type. */
inline int x = "string";

BEGIN
{
	exit(0);
}
