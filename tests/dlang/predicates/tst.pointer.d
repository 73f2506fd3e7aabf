/* A pointer is true unless it is NULL. */
#pragma D option quiet

char *p;

BEGIN
/p/
{
	printf("never\n");
}

BEGIN
{
	p = (char *)1;
}

BEGIN
/p/
{
	printf("set\n");
	exit(0);
}
