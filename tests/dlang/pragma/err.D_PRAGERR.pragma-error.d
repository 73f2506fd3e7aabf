/* So does its other spelling. */
#pragma D error not for you either

BEGIN
{
	exit(0);
}
