/* A fault in one part skips the rest of the clause. */
#pragma D option quiet

BEGIN
{
	zero = 0;
	printf("before\n");
	if (1 / zero) {
		printf("then\n");
	} else {
		printf("else\n");
	}
	printf("rest\n");
}

BEGIN
{
	printf("next clause\n");
	exit(0);
}
