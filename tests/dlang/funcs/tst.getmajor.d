/* The two numbers of a device of 64 bits. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", getmajor(0x500000003));
	printf("%d\n", getminor(0x500000003));
	exit(0);
}
