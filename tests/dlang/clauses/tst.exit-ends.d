/* After exit no further clause runs but END; the clause itself goes on. */
#pragma D option quiet

BEGIN
{
	printf("before\n");
	exit(0);
	printf("after\n");
}

BEGIN
{
	printf("never\n");
}

END
{
	printf("end\n");
}
