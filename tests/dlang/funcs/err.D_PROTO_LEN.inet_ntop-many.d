/* inet_ntop() has an argument too many. */
BEGIN
{
	inet_ntop(2, alloca(4), 1);
	exit(0);
}
