/* What was speculated appears at commit(), under the name of its own probe. */

BEGIN
{
	self->s = speculation();
}

BEGIN
{
	speculate(self->s);
	trace("speculated");
}

BEGIN
{
	trace("at once");
}

BEGIN
{
	commit(self->s);
}

BEGIN
{
	exit(0);
}
