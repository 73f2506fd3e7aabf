/* exit's argument is the status. */
/* @status: 42 */
#pragma D option quiet

BEGIN
{
	exit(42);
}
