/* A fault of ERROR's own clause is counted, and fires no ERROR. */
#pragma D option quiet

BEGIN
{
	*(int *)0x1000;
}

ERROR
{
	n++;
	*(int *)0x2000;
}

BEGIN
{
	printf("%d\n", n);
	exit(0);
}
