/* Aggregations stand behind an empty line, after END. */
#pragma D option quiet

BEGIN
{
	@a = count();
	exit(0);
}

END
{
	@a = count();
	printf("end\n");
}
