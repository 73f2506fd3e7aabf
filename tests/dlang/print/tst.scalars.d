/* The type, and the value in hex. */
#pragma D option quiet

BEGIN
{
	print(23);
	print((long)-1);
	print((char)'a');
	print((uint16_t)255);
	print(0);
	exit(0);
}
