/* An offset is a constant. */
#pragma D option quiet

struct s {
	int pad[3];
	int member;
};

int a[offsetof(struct s, member)];

BEGIN
{
	printf("%d %d\n", sizeof (a), offsetof(struct s, member) + 1);
	exit(0);
}
