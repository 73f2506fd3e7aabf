/* Records larger than the buffer are dropped, and counted; the clause is skipped with its assignments. */
#pragma D option quiet

#pragma D option bufsize=512
#pragma D option strsize=1k

BEGIN
{
	n++;
	trace("lost");
}

BEGIN
{
	printf("%d\n", n);
	exit(0);
}
