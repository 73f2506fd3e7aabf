/* BEGIN clauses in the order of the text, before everything else; END at last. */
#pragma D option quiet

END
{
	printf("%d end\n", ++n);
}

BEGIN
{
	n = 0;
	printf("%d begin\n", ++n);
}

tick-1ms
{
	printf("%d tick\n", ++n);
	exit(0);
}

BEGIN
{
	printf("%d begin again\n", ++n);
}
