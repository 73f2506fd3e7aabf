/* Without -C nothing is replaced: an unclosed macro call. */
BEGIN
{
	printf("%d\n", ADD(1, 2) NEXT);
}
