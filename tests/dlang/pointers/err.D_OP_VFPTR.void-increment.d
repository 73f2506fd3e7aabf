/* Nothing is known of void to count in. */
BEGIN
{
	p = (void *)8;
	p++;
}
