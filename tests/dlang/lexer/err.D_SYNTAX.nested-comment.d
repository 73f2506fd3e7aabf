/* Comments do not /* nest. */
BEGIN
{
	trace(1);
}
