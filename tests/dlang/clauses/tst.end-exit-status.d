/* END's exit wins. */
/* @status: 7 */
#pragma D option quiet

BEGIN
{
	exit(3);
}

END
{
	exit(7);
}
