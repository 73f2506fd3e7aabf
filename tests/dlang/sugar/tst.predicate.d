/* The clause's own predicate comes first. */
#pragma D option quiet

BEGIN
/0/
{
	if (1) {
		printf("never\n");
	}
}

BEGIN
/1/
{
	if (1) {
		printf("always\n");
	}
	exit(0);
}
