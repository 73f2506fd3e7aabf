/* A type of a module that is not there. */
BEGIN
{
	trace((nomodule`t)1);
}
