/* A list does not end with a comma. */
BEGIN,
{
	exit(0);
}
