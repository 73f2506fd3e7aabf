/* A member of a struct at a bad address. */
#pragma D option quiet

struct s {
	long a;
	int b;
};

BEGIN
{
	trace(((struct s *)0x1000)->b);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
