/* A struct is shown as its bytes; if it has the size of a number, as one. */
#pragma D option quiet

struct pair {
	int left;
	int right;
};

struct three {
	int first;
	struct pair rest;
};

struct three t;

BEGIN
{
	t.first = 0x04030201;
	t.rest.left = 0x08070605;
	t.rest.right = -1;
	trace(t);
	t.rest.right = 1;
	trace(t.rest);
	exit(0);
}
