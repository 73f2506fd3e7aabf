/* Keys longer than strsize are the same. */
#pragma D option quiet

#pragma D option strsize=8

BEGIN
{
	x["0123456789"] = 1;
	x["01234567xy"] = 2;
	printf("%d\n", x["0123456789"]);
	@["0123456789"] = count();
	@["01234567xy"] = count();
	printa("%s %@d\n", @);
	exit(0);
}
