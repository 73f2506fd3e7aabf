/* And the type of the values. */
BEGIN
{
	a[1] = 1;
	a[2] = "two";
}
