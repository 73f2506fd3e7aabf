/* A tag, a member and a variable may have one name. */
#pragma D option quiet

struct same {
	int same;
};

struct same same;

BEGIN
{
	same.same = 5;
	printf("%d\n", same.same);
	exit(0);
}
