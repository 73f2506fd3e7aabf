/* What stands between them runs in its order. */
#pragma D option quiet

BEGIN
{
	printf("1 ");
	if (1) {
		printf("2 ");
	}
	printf("3 ");
	if (0) {
		printf("no ");
	} else {
		printf("4 ");
	}
	printf("5\n");
	exit(0);
}
