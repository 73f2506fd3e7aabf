/* Left out fields match everything, the last one given is the name. */
#pragma D option quiet

:::BEGIN
{
	printf("%s:%s:%s:%s\n", probeprov, probemod, probefunc, probename);
}

BEGIN
{
	printf("name\n");
}

dtrace:::
/probename == "BEGIN"/
{
	printf("provider\n");
	exit(0);
}

dtrace:::END
{
	printf("%s\n", probename);
}
