/* copyout() misses an argument. */
BEGIN
{
	copyout(alloca(1), arg0);
	exit(0);
}
