/* An if in an if. */
#pragma D option quiet

BEGIN
{
	x = 3;
	if (x > 1) {
		if (x > 2) {
			printf("more\n");
		} else {
			printf("less\n");
		}
	}
	exit(0);
}
