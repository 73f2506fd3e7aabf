/* Declared with the types of its keys. */
#pragma D option quiet

int counts[string, int];
string names[int];
self uint8_t flags[char];

BEGIN
{
	counts["a", 1] = 5;
	names[-1] = "minus one";
	self->flags['x'] = 300;
	printf("%d %s %d\n", counts["a", 1], names[-1], self->flags['x']);
	printf("%d %d\n", counts["a", 2], names[1] == NULL);
	exit(0);
}
