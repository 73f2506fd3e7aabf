/* %s: constants, variables, arrays of characters, strings of pointers. */
#pragma D option quiet

struct name {
	char text[8];
};

struct name n;

BEGIN
{
	s = "variable";
	n.text[0] = 'h';
	n.text[1] = 'i';
	this->p = (char *)alloca(4);
	bcopy("ptr", this->p, 4);
	printf("%s, %s, %s, %s, [%s]\n", "constant", s, n.text, stringof(this->p), "");
	printf("%s\n", probename);
	exit(0);
}
