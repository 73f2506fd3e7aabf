/* As many bytes as memref() says, at most the first argument. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(8);
	bcopy("abcdefg", this->p, 8);
	printm(8, memref(this->p, 8));
	printm(4, memref(this->p, 8));
	printm(8, memref(this->p, 2));
	exit(0);
}
