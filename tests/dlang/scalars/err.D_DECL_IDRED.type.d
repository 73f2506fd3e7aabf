/* A variable is not declared again with another type. */
int x;
char x;

BEGIN
{
	exit(0);
}
