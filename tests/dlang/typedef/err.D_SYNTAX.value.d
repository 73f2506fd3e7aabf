/* A type is no value. */
typedef int t;

BEGIN
{
	trace(t);
}
