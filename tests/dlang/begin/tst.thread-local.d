/* BEGIN and END run in one thread: its variables stay. */
#pragma D option quiet

BEGIN
{
	self->x = 5;
	this->y = 6;
	exit(0);
}

END
{
	printf("%d\n", self->x);
}
