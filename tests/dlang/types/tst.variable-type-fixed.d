/* A variable's type is that of its first value: an int stays one. */
#pragma D option quiet

BEGIN
{
	i = 1;
	l = 1L;
	c = (char)1;
	i = 0x1234567890;
	l = 0x1234567890;
	c = 0x1ff;
	printf("%x %x %d\n", i, l, c);
	exit(0);
}
