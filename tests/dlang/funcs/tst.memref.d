/* The address and the size of memory, as two words. */
#pragma D option quiet

BEGIN
{
	this->p = alloca(24);
	this->r = memref(this->p, 24);
	printf("%d %d\n", this->r[0] == (uintptr_t)this->p, this->r[1]);
	exit(0);
}
