/* copyout() has an argument too many. */
BEGIN
{
	copyout(alloca(1), arg0, 1, 1);
	exit(0);
}
