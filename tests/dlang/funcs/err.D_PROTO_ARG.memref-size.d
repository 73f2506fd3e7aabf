/* A size is a number. */
BEGIN
{
	memref(alloca(1), "a");
	exit(0);
}
