/* Nor a function. */
int strlen;

BEGIN
{
	exit(0);
}
