/* A number as text: decimal has a sign, other bases have none. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", lltostr(0));
	printf("[%s]\n", lltostr(42));
	printf("[%s]\n", lltostr(-42));
	printf("[%s]\n", lltostr(9223372036854775807));
	printf("[%s]\n", lltostr(-9223372036854775807 - 1));
	printf("[%s]\n", lltostr((char)-1));
	printf("[%s]\n", lltostr((uint8_t)255));
	exit(0);
}
