/* An array at the top. */
#pragma D option quiet

BEGIN
{
	printf("%s %s\n", json("[10, [20, 30]]", "[0]"), json("[10, [20, 30]]", "[1][1]"));
	exit(0);
}
