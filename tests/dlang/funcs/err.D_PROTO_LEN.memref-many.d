/* memref() has an argument too many. */
BEGIN
{
	memref(alloca(1), 1, 1);
	exit(0);
}
