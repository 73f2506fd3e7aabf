/* if and else. */
#pragma D option quiet

BEGIN
{
	n = 5;
	if (n == 5) {
		printf("five\n");
	} else {
		printf("other\n");
	}
	if (n > 5) {
		printf("more\n");
	} else {
		printf("not more\n");
	}
	exit(0);
}
