/* Assignments, and aggregating, leave no line. */

BEGIN
{
	x = 1;
	@a = sum(x);
}

BEGIN
{
	this->y = x;
	self->z = 2;
	x++;
}

BEGIN
/x == 2/
{
	exit(0);
}
