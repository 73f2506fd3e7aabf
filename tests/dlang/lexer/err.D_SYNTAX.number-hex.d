/* g is no hexadecimal digit. */
BEGIN
{
	trace(0xfg);
}
