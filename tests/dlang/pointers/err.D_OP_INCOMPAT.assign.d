/* A pointer does not become an integer without a cast. */
BEGIN
{
	x = 1;
	p = (int *)8;
	x = p;
}
