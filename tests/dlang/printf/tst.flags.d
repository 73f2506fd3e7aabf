/* + and blank before numbers that are not negative; # says the base. */
#pragma D option quiet

BEGIN
{
	printf("[%+d] [%+d] [% d] [% d]\n", 5, -5, 5, -5);
	printf("[%#x] [%#X] [%#o] [%#x]\n", 255, 255, 8, 0);
	printf("[%#8x] [%-#8x] [%#08x]\n", 255, 255, 255);
	printf("[%+5d] [%-+5d] [%+05d]\n", 5, 5, 5);
	printf("[%'d]\n", 1000000);
	exit(0);
}
