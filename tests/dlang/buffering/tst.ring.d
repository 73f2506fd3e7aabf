/* Policy ring: the last records remain, exit()'s as well. */
#pragma D option quiet
#pragma D option bufsize=50
#pragma D option bufpolicy=ring

int i;

tick-10ms
{
	printf("%d\n", i++);
}

tick-10ms
/i == 20/
{
	exit(0);
}
