/* A number is no text. */
BEGIN
{
	copyoutstr(7, arg0, 1);
	exit(0);
}
