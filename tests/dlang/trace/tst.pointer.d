/* A pointer is a number of 8 bytes. */

BEGIN
{
	trace((char *)255);
	trace((void *)0);
	exit(0);
}
