/* A cast is no variable: what it points to is not written. */
BEGIN
{
	*(int *)0x1000 = 5;
}
