/* Text is no number. */
BEGIN
{
	trace((int)"123");
}
