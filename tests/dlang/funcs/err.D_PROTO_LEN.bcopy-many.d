/* bcopy() has an argument too many. */
BEGIN
{
	bcopy(alloca(1), alloca(1), 1, 1);
	exit(0);
}
