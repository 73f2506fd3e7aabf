/* Keys of all sizes, with their signs. */
#pragma D option quiet

BEGIN
{
	@a[(char)-1, (unsigned char)255, (short)-2, (unsigned)0xffffffff, -3L, 'c'] = count();
	printa("%d %d %d %d %d %c\n", @a);
	exit(0);
}
