/* Policy switch: records are read again and again, and nothing is lost. */
#pragma D option quiet
#pragma D option bufsize=1k
#pragma D option bufpolicy=switch
#pragma D option switchrate=10ms

tick-10ms
{
	printf("%d\n", i++);
}

tick-10ms
/i == 10/
{
	exit(0);
}
