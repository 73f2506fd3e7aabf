/* Width, blanks or zeros, left or right. */
#pragma D option quiet

BEGIN
{
	printf("[%5d] [%-5d] [%05d]\n", 42, 42, 42);
	printf("[%5d] [%-5d] [%05d]\n", -42, -42, -42);
	printf("[%1d] [%3d]\n", 12345, 12345);
	printf("[%8s] [%-8s] [%2s]\n", "abc", "abc", "abc");
	printf("[%6x] [%-6x] [%06x]\n", 255, 255, 255);
	printf("[%3c] [%-3c]\n", 'a', 'a');
	exit(0);
}
