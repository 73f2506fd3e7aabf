/* A text is not longer than strsize. */
/* @options: -x strsize=8 */
#pragma D option quiet

BEGIN
{
	printf("%d\n", strlen("0123456789"));
	printf("%d\n", strlen(strjoin("0123", "45")));
	exit(0);
}
