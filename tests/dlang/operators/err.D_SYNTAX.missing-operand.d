/* An operator without its right side. */
BEGIN
{
	x = 1 +;
}
