/* Classes of C that D's variables do not have. */
static int x;

BEGIN
{
	exit(0);
}
