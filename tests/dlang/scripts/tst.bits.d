/* Bits taken apart: shifts, masks, and dotted addresses of numbers. */
#pragma D option quiet

BEGIN
{
	ip = 0xc0a8010a;
	printf("%d.%d.%d.%d\n", (ip >> 24) & 0xff, (ip >> 16) & 0xff, (ip >> 8) & 0xff, ip & 0xff);
	printf("%o %o %s\n", 0100644 & 0777, 0100644 >> 12, (0100644 & 0170000) == 0100000 ? "file" : "other");
	printf("%x %x\n", ~0xf & 0xff, 1 << 31 >> 28);
	exit(0);
}
