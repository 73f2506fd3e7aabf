/* A cast cannot be assigned to. */
BEGIN
{
	x = 1;
	(char)x = 2;
}
