/* A whole struct, with its names. */
#pragma D option quiet

struct s {
	long a[4];
};

BEGIN
{
	print(*(struct s *)0x1000);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
