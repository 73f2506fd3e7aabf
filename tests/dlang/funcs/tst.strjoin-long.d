/* A joined text longer than strsize: out of scratch space. */
/* @options: -x strsize=8 */
#pragma D option quiet

BEGIN
{
	trace(strjoin("abcd", "efgh"));
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
