/* A scalar does not become an array. */
BEGIN
{
	a = 1;
	a[1] = 2;
}
