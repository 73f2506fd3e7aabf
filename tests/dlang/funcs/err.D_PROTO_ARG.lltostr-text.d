/* Text is no number. */
BEGIN
{
	lltostr("a");
	exit(0);
}
