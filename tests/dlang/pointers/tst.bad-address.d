/* A bad address is a fault: what the clause recorded is gone, the next one runs. */
#pragma D option quiet

BEGIN
{
	x = 1;
	printf("never\n");
	x = *(int *)0x10;
	x = 2;
}

BEGIN
{
	printf("%d\n", x);
	exit(0);
}

ERROR
{
	printf("fault %d at %x\n", arg4, arg5);
}
