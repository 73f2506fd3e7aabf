/* A clause without actions leaves that it happened. */

BEGIN
{
}

BEGIN
{
	exit(0);
}
