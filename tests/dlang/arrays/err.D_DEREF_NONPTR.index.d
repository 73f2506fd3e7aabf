/* Integers have no elements. */
int a;

BEGIN
{
	trace(a[0]);
}
