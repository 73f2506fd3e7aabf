/* memref() misses an argument. */
BEGIN
{
	memref(alloca(1));
	exit(0);
}
