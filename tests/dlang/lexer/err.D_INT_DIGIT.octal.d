/* 8 is no octal digit. */
BEGIN
{
	trace(0178);
}
