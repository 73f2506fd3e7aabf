/* Other bases; 0x may stand before those of 16. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("1f", 16));
	printf("%d\n", strtoll("0x1f", 16));
	printf("%d\n", strtoll("0X1F", 16));
	printf("%d\n", strtoll("-0x1f", 16));
	printf("%d\n", strtoll("0x", 16));
	printf("%d\n", strtoll("777", 8));
	printf("%d\n", strtoll("0777", 8));
	printf("%d\n", strtoll("78", 8));
	printf("%d\n", strtoll("101", 2));
	printf("%d\n", strtoll("102", 2));
	printf("%d\n", strtoll("z", 36));
	printf("%d\n", strtoll("Z", 36));
	printf("%d\n", strtoll("zz", 35));
	exit(0);
}
