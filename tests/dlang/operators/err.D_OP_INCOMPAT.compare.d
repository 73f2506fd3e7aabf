/* Strings are not compared with integers. */
BEGIN
{
	x = 1;
	trace(x == "1");
}
