/* Four bytes in memory, as an address of IPv4. */
#pragma D option quiet

BEGIN
{
	this->a = (uint8_t *)alloca(4);
	this->a[0] = 192; this->a[1] = 168; this->a[2] = 1; this->a[3] = 10;
	printf("%s\n", inet_ntoa((uint32_t *)this->a));
	this->a[0] = 0; this->a[1] = 0; this->a[2] = 0; this->a[3] = 0;
	printf("%s\n", inet_ntoa((uint32_t *)this->a));
	this->n = (uint32_t *)this->a; this->n[0] = htonl(0xfffefd01);
	printf("%s\n", inet_ntoa(this->n));
	exit(0);
}
