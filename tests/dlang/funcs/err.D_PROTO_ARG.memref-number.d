/* A number other than 0 is no pointer. */
BEGIN
{
	memref(5, 1);
	exit(0);
}
