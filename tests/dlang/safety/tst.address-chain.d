/* A pointer that leads nowhere. */
#pragma D option quiet

struct s {
	struct s *next;
	int b;
};

BEGIN
{
	trace(((struct s *)0x1000)->next->next->b);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
