/* A number other than 0 is no pointer. */
BEGIN
{
	copyinto(arg0, 1, 99);
	exit(0);
}
