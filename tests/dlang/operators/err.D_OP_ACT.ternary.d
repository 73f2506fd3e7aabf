/* Actions are no values to choose from. */
BEGIN
{
	x = 1;
	x ? trace(1) : trace(2);
}
