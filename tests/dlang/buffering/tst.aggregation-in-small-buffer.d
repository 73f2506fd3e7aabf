/* Where there are aggregations, a buffer is large enough for any record. */
#pragma D option quiet
#pragma D option bufsize=16

BEGIN
{
	@a["key"] = count();
	printf("%s\n", "of 256 bytes");
	exit(0);
}
