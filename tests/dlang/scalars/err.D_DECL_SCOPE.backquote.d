/* A declared name is the program's own. */
int kernel`x;

BEGIN
{
	exit(0);
}
