/* The last semicolon may be left out, and there may be more than needed. */
#pragma D option quiet

BEGIN
{
	;
	printf("one\n");;
	exit(0)
}
