/* And it is an integer. */
int a[5];

BEGIN
{
	a["one"] = 3;
}
