/* It changes the guest: only with -w. */
/* @status: 1 */
#pragma D option quiet

BEGIN
{
	copyoutstr("abc", 0x10, 4);
	exit(0);
}
