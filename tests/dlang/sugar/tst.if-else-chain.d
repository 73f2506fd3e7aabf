/* if, else if and else, with blocks. */
#pragma D option quiet

BEGIN
{
	x = 2;
	if (x == 1) {
		printf("one\n");
	} else if (x == 2) {
		printf("two\n");
		y = 5;
	} else {
		printf("many\n");
	}
	if (y == 5)
		printf("five\n");
	exit(0);
}
