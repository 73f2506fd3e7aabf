/* The wall clock, whose epoch under --clock icount is known: year 2000, one second. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", walltimestamp / 1000000000);
}

tick-1sec
{
	printf("%d\n", (walltimestamp - 946684800000000000) / 1000000);
	printf("%d\n", walltimestamp / 1000 - timestamp / 1000 == 946684800000000);
	exit(0);
}
