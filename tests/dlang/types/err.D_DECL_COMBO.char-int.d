/* Two types are none. */
char int x;

BEGIN
{
	x = 1;
}
