/* Chains of else if: one branch runs. */
#pragma D option quiet

BEGIN
{
	n = 3;
	if (n == 1) {
		printf("one\n");
	} else if (n == 2) {
		printf("two\n");
	} else if (n == 3) {
		printf("three\n");
	} else {
		printf("many\n");
	}
	exit(0);
}
