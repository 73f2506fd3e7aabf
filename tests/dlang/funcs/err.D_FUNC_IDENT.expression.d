/* What is called has a name. */

BEGIN
{
	y = (1 + 2)(1);
}
