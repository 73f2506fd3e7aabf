/* A function has no value. */
BEGIN
{
	trace(*(int (*)(int))0x1000);
}
