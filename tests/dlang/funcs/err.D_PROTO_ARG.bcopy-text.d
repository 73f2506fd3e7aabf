/* A size is a number. */
BEGIN
{
	bcopy(alloca(1), alloca(1), "a");
	exit(0);
}
