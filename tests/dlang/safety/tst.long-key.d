/* Keys longer than strsize are the same. */
#pragma D option quiet

#pragma D option strsize=8

BEGIN
{
	x["0123456789"] = 1;
	x["0123456xyz"] = 2;
	printf("%d\n", x["0123456789"]);
	@["0123456789"] = count();
	@["0123456xyz"] = count();
	printa("%s %@d\n", @);
	exit(0);
}
