/* Ten levels. */
#pragma D option quiet

BEGIN
{
	n = 10;
	if (n > 0) { if (n > 1) { if (n > 2) { if (n > 3) { if (n > 4) {
		if (n > 5) { if (n > 6) { if (n > 7) { if (n > 8) { if (n > 9) {
			printf("ten\n");
		} } } } }
		if (n > 10) { printf("no\n"); } else { printf("five\n"); }
	} } } } }
	exit(0);
}
