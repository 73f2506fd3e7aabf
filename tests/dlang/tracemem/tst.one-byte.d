/* A single byte. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(1);
	*this->p = 'z';
	tracemem(this->p, 1);
	exit(0);
}
