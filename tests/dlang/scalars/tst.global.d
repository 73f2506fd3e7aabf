/* A global variable lives as long as the program. */
#pragma D option quiet

BEGIN
{
	x = 1;
}

BEGIN
{
	x = x + 1;
}

BEGIN
{
	printf("%d\n", x);
	exit(0);
}

END
{
	printf("%d at the end\n", x);
}
