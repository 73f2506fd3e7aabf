/* A module that is not there. */
#pragma D depends_on module nosuch

BEGIN
{
	exit(0);
}
