/* An absent element counts from zero. */
#pragma D option quiet

int n[string];

BEGIN
{
	n["a"]++;
	n["a"]++;
	n["b"] += 5;
	n["c"]--;
	printf("%d %d %d\n", n["a"], n["b"], n["c"]);
	exit(0);
}
