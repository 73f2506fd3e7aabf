/* Both, by the number of the family: 2 is IPv4. */
#pragma D option quiet

BEGIN
{
	this->a = (uint8_t *)alloca(16);
	this->a[0] = 10; this->a[15] = 1;
	printf("%s\n", inet_ntop(2, this->a));
	exit(0);
}
