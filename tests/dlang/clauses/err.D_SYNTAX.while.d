/* Of no kind. */
BEGIN
{
	while (1)
		trace(1);
}
