/* What a cast leaves of a constant may be zero. */
BEGIN
{
	x = 1 / (uint8_t)0x100;
}
