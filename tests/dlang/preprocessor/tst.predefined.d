/* Some names are defined by D itself: headers can tell who reads them. */
/* @options: -C */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", __SUNW_D + __SUNW_D_64, __SUNW_D_VERSION >= 0x01000000);
	exit(0);
}
