/* Behind self-> and this-> any word is a name, also a keyword or that of a built-in variable. */
#pragma D option quiet

self int timestamp;

BEGIN
{
	self->timestamp = 5;
	this->pid = 6;
	self->this = 7;
	this->self = 8;
	self->int = 9;
	printf("%d %d %d %d %d\n", self->timestamp, this->pid, self->this, this->self, self->int);
	exit(0);
}
