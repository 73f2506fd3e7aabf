/* Nor is a builtin variable. */

BEGIN
{
	y = timestamp(1);
}
