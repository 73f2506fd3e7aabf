/* Sixteen bytes, as an address of IPv6: the longest run of zeros is two colons, and an address of IPv4 in it is shown alone. */
#pragma D option quiet

BEGIN
{
	this->a = (uint8_t *)alloca(16);
	this->a[0] = 0xfe; this->a[1] = 0x80; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x2; this->a[9] = 0x14; this->a[10] = 0x44; this->a[11] = 0xff; this->a[12] = 0xfe; this->a[13] = 0x3b; this->a[14] = 0x76; this->a[15] = 0xc8;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x10; this->a[1] = 0x80; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x8; this->a[10] = 0x8; this->a[11] = 0x0; this->a[12] = 0x20; this->a[13] = 0xc; this->a[14] = 0x41; this->a[15] = 0x7a;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x0; this->a[1] = 0x0; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0x0; this->a[13] = 0x0; this->a[14] = 0x0; this->a[15] = 0x1;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x0; this->a[1] = 0x0; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0x0; this->a[13] = 0x0; this->a[14] = 0x0; this->a[15] = 0x0;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0xff; this->a[1] = 0x1; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0x0; this->a[13] = 0x0; this->a[14] = 0x1; this->a[15] = 0x1;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x20; this->a[1] = 0x1; this->a[2] = 0xd; this->a[3] = 0xb8; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x1;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0x0; this->a[13] = 0x0; this->a[14] = 0x0; this->a[15] = 0x1;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x0; this->a[1] = 0x1; this->a[2] = 0x0; this->a[3] = 0x2; this->a[4] = 0x0; this->a[5] = 0x3; this->a[6] = 0x0; this->a[7] = 0x4;
	this->a[8] = 0x0; this->a[9] = 0x5; this->a[10] = 0x0; this->a[11] = 0x6; this->a[12] = 0x0; this->a[13] = 0x7; this->a[14] = 0x0; this->a[15] = 0x8;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x0; this->a[1] = 0x0; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0xff; this->a[11] = 0xff; this->a[12] = 0x81; this->a[13] = 0x90; this->a[14] = 0x34; this->a[15] = 0x26;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x20; this->a[1] = 0x1; this->a[2] = 0xd; this->a[3] = 0xb8; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0x0; this->a[13] = 0x0; this->a[14] = 0x0; this->a[15] = 0x0;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	this->a[0] = 0x0; this->a[1] = 0x0; this->a[2] = 0x0; this->a[3] = 0x0; this->a[4] = 0x0; this->a[5] = 0x0; this->a[6] = 0x0; this->a[7] = 0x0;
	this->a[8] = 0x0; this->a[9] = 0x0; this->a[10] = 0x0; this->a[11] = 0x0; this->a[12] = 0xd; this->a[13] = 0x1; this->a[14] = 0x44; this->a[15] = 0x3;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->a));
	exit(0);
}
