/* A pointer to what? */
int *;

BEGIN
{
	exit(0);
}
