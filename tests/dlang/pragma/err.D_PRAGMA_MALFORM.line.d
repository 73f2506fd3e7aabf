/* A line's number is one. */
#line "file" 5

BEGIN
{
	exit(0);
}
