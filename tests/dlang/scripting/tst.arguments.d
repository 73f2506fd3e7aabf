/* $1, $2, ... stand for what they look like. */
/* @arguments: 5 +3 0x10 name "two words" */
#pragma D option quiet

BEGIN
{
	$4 = 7;
	printf("%d %d %d %d %s\n", $1, $2, $3, name, $5);
	exit(0);
}
