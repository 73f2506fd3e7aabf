/* An argument is one operand, whatever stands beside it. */
/* @arguments: -- -5 3 */
#pragma D option quiet

BEGIN
/$2 == 3/
{
	printf("%d %d %d\n", $1 - $1, -$1, $2 * $1);
	a[$2] = $1;
	printf("%d\n", a[3]);
	exit(0);
}
