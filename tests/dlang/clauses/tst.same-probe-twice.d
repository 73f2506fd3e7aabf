/* A probe that is named twice runs the clause twice. */
#pragma D option quiet

dtrace:::BEGIN, dtrace:::BEGIN
{
	printf("%d\n", ++n);
}

BEGIN
/n == 2/
{
	exit(0);
}
