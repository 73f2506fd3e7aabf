/* Bytes of the network's order, and back. */
#pragma D option quiet

BEGIN
{
	printf("%x %x\n", htons(0x1234), ntohs(0x1234));
	printf("%x %x\n", htonl(0x12345678), ntohl(0x12345678));
	printf("%x\n", htonll(0x123456789abcdef0));
	printf("%x\n", ntohll(htonll(0xfedcba9876543210)));
	printf("%x %x %x\n", htons(0xffff1234), htonl(0xffffffff12345678), htons(0x12));
	printf("%d %d %d\n", sizeof (htons(1)), sizeof (htonl(1)), sizeof (htonll(1)));
	exit(0);
}
