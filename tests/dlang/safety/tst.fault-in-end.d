/* A fault in END: the status of exit() stays. */
/* @status: 3 */
#pragma D option quiet

BEGIN
{
	exit(3);
}

END
{
	*(int *)0x1000;
	exit(4);
}
