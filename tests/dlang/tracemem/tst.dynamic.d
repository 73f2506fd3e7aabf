/* The third argument says how many of the bytes are shown: at most all, none for 0 or less... */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(8);
	bcopy("abcdefg", this->p, 8);
	this->n = 3;
	tracemem(this->p, 8, this->n);
	tracemem(this->p, 8, 8);
	tracemem(this->p, 8, 100);
	exit(0);
}
