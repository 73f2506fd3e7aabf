/* Two types and a name. */
int size_t x;

BEGIN
{
	exit(0);
}
