/* copyinto() has an argument too many. */
BEGIN
{
	copyinto(arg0, 1, alloca(1), 1);
	exit(0);
}
