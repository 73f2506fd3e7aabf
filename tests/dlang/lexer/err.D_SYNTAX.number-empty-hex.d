/* A hexadecimal constant has digits. */
BEGIN
{
	x = 0x;
}
