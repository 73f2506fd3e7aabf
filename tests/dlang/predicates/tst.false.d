/* A false predicate: nothing happens. */
#pragma D option quiet

BEGIN
/0/
{
	printf("never\n");
}

BEGIN
/1/
{
	printf("always\n");
	exit(0);
}
