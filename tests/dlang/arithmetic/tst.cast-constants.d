/* Constants are cast as variables are: a number of the old type becomes one of the new type. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", (char)0xff, (short)0xffff, (int)0xffffffff);
	printf("%d %d %d\n", (unsigned char)-1, (unsigned short)-1, (unsigned int)-1);
	printf("%d %d\n", (char)128, (char)-129);
	printf("%d %d\n", (int64_t)18446744073709551615u, (uint64_t)-1);
	printf("%d %d %d\n", (int)(uint8_t)0xf0, (int)(int8_t)0xf0, (uint64_t)(int8_t)0xf0 == (uint64_t)-16);
	exit(0);
}
