/* Something to depend on that is none. */
#pragma D depends_on weather sunny

BEGIN
{
	exit(0);
}
