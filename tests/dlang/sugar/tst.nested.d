/* if inside if; else belongs to the nearest. */
#pragma D option quiet

BEGIN
{
	a = 1;
	b = 0;
	if (a) {
		if (b) {
			printf("both\n");
		} else {
			printf("a only\n");
		}
		printf("a\n");
	}
	if (a)
		if (b)
			printf("both\n");
		else
			printf("nearest\n");
	exit(0);
}
