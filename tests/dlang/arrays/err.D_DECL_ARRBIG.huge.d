/* More elements than 32 bits count. */
int a[0x123456789];

BEGIN
{
	exit(0);
}
