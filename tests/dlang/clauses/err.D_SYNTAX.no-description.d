/* And a description. */
{
	exit(0);
}
