/* A number other than 0 is no pointer. */
BEGIN
{
	bcopy(5, alloca(1), 1);
	exit(0);
}
