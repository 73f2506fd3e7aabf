/* There is nothing where void points. */
BEGIN
{
	trace(*(void *)0x1000);
}
