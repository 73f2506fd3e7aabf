/* bcopy() misses an argument. */
BEGIN
{
	bcopy(alloca(1), alloca(1));
	exit(0);
}
