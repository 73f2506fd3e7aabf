/* A string has room for strsize characters, wherever it is: variables, keys, results. */
#pragma D option quiet
#pragma D option strsize=4

string g;

BEGIN
{
	g = this->t = self->s = a["abcd", 1] = "abcde";
	printf("%s %s %s %s %d %d\n", g, this->t, self->s, a["abcde", 1], strlen(g), g == "abcdx");
	@["abcde"] = count();
	@["abcdx"] = count();
	@["abc"] = count();
	printa("%s %@d\n", @);
	printf("%s %s %s %d\n", "abcde", substr("abcde", 0), strchr(g, 'a'), index(g, "d"));
	trace(g);
	exit(0);
}
