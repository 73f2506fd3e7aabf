/* The same name in every scope is another variable, of another type. */
#pragma D option quiet

BEGIN
{
	x = 1;
	self->x = "two";
	this->x = (char)3;
	printf("%d %s %d\n", x, self->x, this->x);
	printf("%d %d\n", sizeof (x), sizeof (this->x));
	exit(0);
}
