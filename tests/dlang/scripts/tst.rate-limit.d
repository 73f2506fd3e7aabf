/* At most two lines in each period: a budget that a timer renews. */
#pragma D option quiet

int budget;

tick-100ms
{
	budget = 2;
	periods++;
}

tick-20ms
/budget > 0/
{
	printf("%d.%d\n", periods, 2 - budget);
	budget--;
}

tick-100ms
/periods == 3/
{
	exit(0);
}
