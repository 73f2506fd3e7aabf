/* A lock is a struct: text is none. */
BEGIN
{
	mutex_owned("x");
}
