/* A machine of states, in one global and a table. */
#pragma D option quiet

string next[string];
string state;

BEGIN
{
	next["closed"] = "listen";
	next["listen"] = "syn-received";
	next["syn-received"] = "established";
	next["established"] = "closed";
	state = "closed";
}

tick-1ms
{
	printf("%s -> %s\n", state, next[state]);
	@[state] = count();
	state = next[state];
	n++;
}

tick-1ms
/n == 6/
{
	printa("%-14s %@d\n", @);
	exit(0);
}
