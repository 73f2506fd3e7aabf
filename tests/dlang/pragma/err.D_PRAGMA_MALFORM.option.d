/* An option's name is missing. */
#pragma D option

BEGIN
{
	exit(0);
}
