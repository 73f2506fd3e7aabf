/* Policy fill: when there is no room for 16 more bytes, tracing is over. */
#pragma D option quiet
#pragma D option bufsize=64
#pragma D option bufpolicy=fill

int i;

tick-10ms
{
	printf("%d\n", i++);
}
