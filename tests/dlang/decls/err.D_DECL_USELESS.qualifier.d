/* A type alone says nothing. */
const char;

BEGIN
{
	exit(0);
}
