/* Base 16 begins with 0x, base 8 with 0, others with nothing. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", lltostr(255, 16));
	printf("[%s]\n", lltostr(8, 8));
	printf("[%s]\n", lltostr(0, 16));
	printf("[%s]\n", lltostr(0, 8));
	printf("[%s]\n", lltostr(0, 2));
	printf("[%s]\n", lltostr(5, 2));
	printf("[%s]\n", lltostr(35, 36));
	printf("[%s]\n", lltostr(36, 36));
	printf("[%s]\n", lltostr(-1, 16));
	printf("[%s]\n", lltostr(-1, 8));
	printf("[%s]\n", lltostr(-1, 2));
	printf("[%s]\n", lltostr(-42, 10));
	printf("[%s]\n", lltostr(3, 3));
	exit(0);
}
