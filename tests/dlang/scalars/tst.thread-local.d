/* self-> lives as long as the thread. */
#pragma D option quiet

BEGIN
{
	self->x = 5;
	self->s = "text";
}

BEGIN
/self->x/
{
	self->x += 2;
	printf("%d %s\n", self->x, self->s);
	self->x = 0;
	self->s = 0;
}

BEGIN
/!self->x/
{
	printf("%d %d\n", self->x, self->s == NULL);
	exit(0);
}
