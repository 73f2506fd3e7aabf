/* Not unsigned. */
unsigned void *x;

BEGIN
{
	exit(0);
}
