/* An address of IPv4 in one of IPv6 is shown in its place. */
#pragma D option quiet

BEGIN
{
	this->a = (uint8_t *)alloca(16);
	this->a[12] = 129; this->a[13] = 144; this->a[14] = 52; this->a[15] = 38;
	printf("%s\n", inet_ntop(28, this->a));
	this->a[10] = 0xff; this->a[11] = 0xff;
	printf("%s\n", inet_ntop(28, this->a));
	this->a[0] = 0xfe; this->a[1] = 0x80;
	printf("%s\n", inet_ntop(28, this->a));
	exit(0);
}
