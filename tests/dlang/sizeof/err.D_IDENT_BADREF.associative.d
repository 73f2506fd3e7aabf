/* An associative array is as large as it gets. */
BEGIN
{
	a[1] = 2;
	trace(sizeof (a));
}
