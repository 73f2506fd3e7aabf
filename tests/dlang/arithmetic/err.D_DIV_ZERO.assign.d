/* By an assignment. */
BEGIN
{
	x = 5;
	x /= 0;
}
