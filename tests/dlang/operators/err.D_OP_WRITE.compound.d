/* And for +=. */
BEGIN
{
	arg0 += 1;
}
