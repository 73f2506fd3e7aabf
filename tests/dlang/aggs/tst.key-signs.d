/* Keys are shown as trace() shows values, and compared as unsigned numbers. */
#pragma D option quiet

BEGIN
{
	@a[-1] = count();
	@a[1] = count();
	@a[0] = count();
	@b[(char)-1] = count();
	@b[(char)1] = count();
	exit(0);
}
