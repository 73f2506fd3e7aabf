/* Aggregations that are cleared while the program runs go on from 0. */
#pragma D option quiet

tick-1s
/n++ == 0/
{
	@a = sum(100);
}

tick-1s
/n == 2/
{
	clear(@a);
}

tick-1s
/n == 4/
{
	@a = sum(5);
}

tick-1s
/n == 6/
{
	exit(0);
}
