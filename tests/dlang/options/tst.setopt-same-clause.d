/* setopt() counts for what comes after it in its own clause, and for nothing before it. */
#pragma D option quiet

BEGIN
{
	@["b"] = sum(1);
	@["a"] = sum(2);
	printa("%s", @);
	setopt("aggsortrev");
	printa("%s", @);
	setopt("quiet", "off");
	trace(7);
	setopt("quiet");
	trace(8);
	printa(" %s", @);
	exit(0);
}
