/* Each of them. */
BEGIN
{
	a[1, "x"] = 1;
	a["x", "x"] = 2;
}
