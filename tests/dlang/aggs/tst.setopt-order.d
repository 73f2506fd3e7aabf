/* setopt() changes the order for what is printed later. */
#pragma D option quiet

BEGIN
{
	@a["a"] = sum(3);
	@a["b"] = sum(1);
	@a["c"] = sum(2);
	printa("%s", @a);
	setopt("aggsortkey");
	printa(" %s", @a);
	setopt("aggsortrev", "yes");
	printa(" %s", @a);
	setopt("aggsortkey", "no");
	printa(" %s", @a);
	printf("\n");
	exit(0);
}
