/* Strings are values: a copy does not change with its source. */
#pragma D option quiet

BEGIN
{
	a = "one";
	b = a;
	a = "two";
	printf("%s %s\n", a, b);
	self->s = b;
	this->s = self->s;
	c[a] = this->s;
	printf("%s %s %s\n", self->s, this->s, c["two"]);
	exit(0);
}
