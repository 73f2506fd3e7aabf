/* and one of this version is.
   @options: -x version=1.11 */
#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("12"));
	exit(0);
}
