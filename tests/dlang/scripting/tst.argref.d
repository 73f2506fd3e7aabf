/* -x argref: arguments that nobody looks at. */
/* @options: -x argref */
/* @arguments: 1 2 3 */
#pragma D option quiet

BEGIN
{
	printf("%d\n", $2);
	exit(0);
}
