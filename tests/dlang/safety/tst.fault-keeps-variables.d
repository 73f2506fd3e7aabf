/* What a clause did to variables before a fault stays, what it recorded does not. */
#pragma D option quiet

BEGIN
{
	x = 5;
	printf("lost\n");
	*(int *)0x1000;
	x = 6;
}

BEGIN
{
	printf("%d\n", x);
	exit(0);
}
