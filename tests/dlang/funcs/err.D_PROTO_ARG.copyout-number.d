/* A number other than 0 is no pointer. */
BEGIN
{
	copyout(7, arg0, 1);
	exit(0);
}
