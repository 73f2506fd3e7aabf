/* Fields in expressions and predicates. */
#pragma D option quiet

struct flags {
	int on : 1;
	unsigned int level : 4;
};

struct flags f;

BEGIN
{
	f.on = 1;
	f.level = 15;
}

BEGIN
/f.on && f.level > 7/
{
	f.level += 2;
	printf("%d %d %d\n", f.on, f.level, f.level * 3);
	exit(0);
}
