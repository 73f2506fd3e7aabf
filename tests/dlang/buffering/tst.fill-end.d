/* END's records have their place. */
#pragma D option quiet
#pragma D option bufsize=64
#pragma D option bufpolicy=fill

int i;

tick-10ms
{
	printf("%d\n", i++);
}

END
{
	printf("end %d\n", i);
}
