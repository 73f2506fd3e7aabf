/* The clauses of a probe run in the order of the text. */
#pragma D option quiet

BEGIN
{
	printf("1 ");
}

BEGIN
{
	printf("2 ");
}

END
{
	printf("end\n");
}

BEGIN
{
	printf("3\n");
	exit(0);
}
