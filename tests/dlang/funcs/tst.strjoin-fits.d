/* The joined text and its end fill strsize. */
/* @options: -x strsize=8 */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strjoin("abcd", "efg"));
	exit(0);
}
