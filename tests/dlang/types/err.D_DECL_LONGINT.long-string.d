/* Nor do other types have lengths. */
long string x;

BEGIN
{
	exit(0);
}
