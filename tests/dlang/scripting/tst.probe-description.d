/* In descriptions. */
/* @arguments: BEGIN dtrace */
#pragma D option quiet

$2:::$1
{
	printf("%s\n", probename);
	exit(0);
}
