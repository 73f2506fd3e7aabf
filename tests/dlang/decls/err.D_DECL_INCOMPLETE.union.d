/* A union that is never defined. */
union nowhere u;

BEGIN
{
	exit(0);
}
