/* Enumerators count from zero, or on from the last value given. */
#pragma D option quiet

enum colour {
	RED,
	GREEN,
	BLUE = 10,
	WHITE,
	BLACK = -5,
	GREY,
	SAME = WHITE + 1
};

BEGIN
{
	printf("%d %d %d %d %d %d %d\n", RED, GREEN, BLUE, WHITE, BLACK, GREY, SAME);
	printf("%d %d\n", sizeof (enum colour), sizeof (RED));
	exit(0);
}
