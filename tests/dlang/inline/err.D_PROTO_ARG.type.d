/* Of their types. */
inline int add[int a, int b] = a + b;

BEGIN
{
	trace(add[1, "x"]);
}
