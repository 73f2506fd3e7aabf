/* More may be given away, and the same said twice.
   @options: -x version=1.13 -x version=1.13.0 -x version=1.5 */
#pragma D option quiet
#pragma D option version=1.0

BEGIN
{
	index = 3;
	printf("%d\n", index);
	exit(0);
}
