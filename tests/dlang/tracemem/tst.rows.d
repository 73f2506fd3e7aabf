/* 16 bytes a row; what cannot be printed is a dot. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(20);
	bcopy("DTrace\t0123456789!~", this->p, 20);
	tracemem(this->p, 20);
	exit(0);
}
