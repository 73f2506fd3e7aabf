/* Nothing is void. */
void x;

BEGIN
{
	exit(0);
}
