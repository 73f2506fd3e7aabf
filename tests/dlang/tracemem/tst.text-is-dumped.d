/* Text is dumped as well: it is trace() that looks for it. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(4);
	bcopy("abc", this->p, 4);
	tracemem(this->p, 3);
	exit(0);
}
