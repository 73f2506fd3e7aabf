/* A cast binds closer than any binary operator. A negated uint8_t is still one. */
#pragma D option quiet

BEGIN
{
	x = 300;
	printf("%d %d\n", (uint8_t)x + 1, (uint8_t)(x + 1));
	printf("%d %d\n", -(uint8_t)x, (uint8_t)-x);
	printf("%d\n", sizeof (char) + 1);
	printf("%d\n", (int)(char)(short)0x1ff80);
	exit(0);
}
