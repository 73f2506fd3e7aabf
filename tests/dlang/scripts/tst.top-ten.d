/* The largest ones, in reverse: aggsortrev and trunc(). */
#pragma D option quiet

#pragma D option aggsortrev

int i;

tick-1ms
{
	@[i % 13] = sum(i);
	i++;
}

tick-1ms
/i == 39/
{
	trunc(@, 3);
	printf("%5s %6s\n", "KEY", "SUM");
	printa("%5d %@6d\n", @);
	exit(0);
}
