/* A size is an integer. */
int a["x"];

BEGIN
{
	exit(0);
}
