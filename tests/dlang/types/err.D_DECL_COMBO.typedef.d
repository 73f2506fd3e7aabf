/* Also with a name. */
int32_t char x;

BEGIN
{
	exit(0);
}
