/* rand() has an argument too many. */
BEGIN
{
	rand(1);
	exit(0);
}
