/* Keys of several types, several rows. */
#pragma D option quiet

BEGIN
{
	@reads["sh", 10] = sum(5);
	@reads["sh", 11] = sum(3);
	@reads["ls", 10] = sum(9);
	@reads["sh", 10] = sum(1);
	exit(0);
}
