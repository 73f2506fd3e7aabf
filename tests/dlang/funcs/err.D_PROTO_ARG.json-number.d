/* A number is no text. */
BEGIN
{
	json(5, "a");
	exit(0);
}
