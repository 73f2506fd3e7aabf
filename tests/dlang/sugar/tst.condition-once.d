/* A condition is evaluated once, before its branch changes anything. */
#pragma D option quiet

BEGIN
{
	n = 0;
	if (n++ == 0) {
		n = 10;
		printf("then %d\n", n);
	} else {
		printf("else %d\n", n);
	}
	printf("%d\n", n);
	exit(0);
}
