/* A predicate is evaluated once, also if it is false. */
#pragma D option quiet

int n;

BEGIN
/n++ == 5/
{
	printf("never\n");
}

BEGIN
/n++ == 1/
{
	printf("%d\n", n);
	exit(0);
}
