/* Numbers from 1; 0 when there are no more. */
/* @options: -x nspec=2 */
#pragma D option quiet

BEGIN
{
	printf("%d\n", speculation());
	printf("%d\n", speculation());
	printf("%d\n", speculation());
	exit(0);
}
