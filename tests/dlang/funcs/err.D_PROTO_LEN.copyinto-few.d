/* copyinto() misses an argument. */
BEGIN
{
	copyinto(arg0, 1);
	exit(0);
}
