/* void is neither long nor signed. */
long void *x;

BEGIN
{
	exit(0);
}
