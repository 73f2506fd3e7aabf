/* A variable that is none. */
BEGIN
{
	trace($nosuch);
}
