/* There is at least one key. */
BEGIN
{
	a[] = 1;
}
