/* Variables beyond dynvarsize are dropped and counted; those there are stay. */
#pragma D option quiet

#pragma D option dynvarsize=1k

int i;

tick-1ms
{
	x[i] = i + 1;
	i++;
}

tick-1ms
/i == 200/
{
	printf("%d %d\n", x[0], x[199]);
	exit(0);
}
