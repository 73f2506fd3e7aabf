/* With -x defaultargs missing arguments are 0 or "". */
#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	printf("%d [%s]\n", $1, $$1);
	printf("%d\n", $2 ? $2 : 5);
	exit(0);
}
