/* Nor an address. */
BEGIN
{
	trace((int *)"abc");
}
