/* A cast makes a pointer of a number: where it leads is known when the program runs. */
#pragma D option quiet

BEGIN
{
	*(int *)0x1000 = 5;
	printf("stored\n");
}

ERROR
{
	printf("%d %x\n", arg4, arg5);
	exit(0);
}
