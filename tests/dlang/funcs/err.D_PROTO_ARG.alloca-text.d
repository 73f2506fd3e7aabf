/* A size is a number. */
BEGIN
{
	alloca("a");
	exit(0);
}
