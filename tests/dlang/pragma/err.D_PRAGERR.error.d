/* #error stops. */
#error this program is not for you

BEGIN
{
	exit(0);
}
