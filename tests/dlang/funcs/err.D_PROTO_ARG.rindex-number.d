/* A number is no text. */
BEGIN
{
	rindex(5, "a");
	exit(0);
}
