/* An average of the last four values, in an array that wraps around. */
#pragma D option quiet

int ring[int];
int i, acc;

tick-1ms
{
	i++;
	acc -= ring[i % 4];
	ring[i % 4] = i * i;
	acc += ring[i % 4];
	printf("%d%c", acc / 4, i == 8 ? '\n' : ' ');
}

tick-1ms
/i == 8/
{
	exit(0);
}
