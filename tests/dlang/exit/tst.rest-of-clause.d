/* What follows in the clause is still done; other clauses of the probe are not. */
#pragma D option quiet

BEGIN
{
	printf("before\n");
	exit(0);
	printf("after\n");
	x = 1;
}

BEGIN
{
	printf("never\n");
	x = 2;
}

END
{
	printf("end %d\n", x);
}
