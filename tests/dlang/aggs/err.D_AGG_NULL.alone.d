/* and one that is known has no effect. */
BEGIN
{
	@a = count();
	@a;
}
