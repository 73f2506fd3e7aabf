/* Errors inside are the same as outside. */
BEGIN
{
	if (nosuch) {
		trace(1);
	}
}
