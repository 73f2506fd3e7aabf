/* A list of descriptions, over several lines. */
#pragma D option quiet

dtrace:::BEGIN,
dtrace:::END
/probename != "ERROR"/
{
	printf("%s\n", probename);
}

BEGIN
{
	exit(0);
}
