/* There is no such function. */

BEGIN
{
	x = nosuch(1);
}
