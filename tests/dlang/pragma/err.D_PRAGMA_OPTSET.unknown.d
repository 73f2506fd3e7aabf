/* An option that is none. */
#pragma D option nosuchoption

BEGIN
{
	exit(0);
}
