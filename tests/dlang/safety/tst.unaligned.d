/* A word at an odd address is read all the same. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(16);
	this->p[3] = 1; this->p[4] = 2;
	printf("%x\n", *(short *)(this->p + 3));
	exit(0);
}
