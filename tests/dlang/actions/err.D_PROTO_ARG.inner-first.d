/* Their types, too. */
BEGIN
{
	x = 1 + exit("a");
}
