/* Functions in keys. */
#pragma D option quiet

BEGIN
{
	@[strjoin("a", lltostr(1))] = count();
	@[basename("/x/a1")] = count();
	x[toupper("k")] = 5;
	printf("%d\n", x["K"]);
	printa("%s %@d\n", @);
	exit(0);
}
