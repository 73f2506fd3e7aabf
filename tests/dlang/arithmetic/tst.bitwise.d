/* & | ^ ~ */
#pragma D option quiet

BEGIN
{
	a = 0xf0;
	b = 0x3c;
	printf("%x %x %x %x\n", a & b, a | b, a ^ b, ~a);
	printf("%d %d\n", ~0, ~a & 0xff);
	a &= b; printf("%x ", a);
	a |= 0x01; printf("%x ", a);
	a ^= 0xff; printf("%x\n", a);
	exit(0);
}
