/* stringof an address reads the text there. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(4);
	this->p[0] = 'o';
	this->p[1] = 'k';
	this->a = (uintptr_t)this->p;
	printf("[%s] [%s]\n", stringof(this->p), stringof((char *)this->a));
	printf("[%s]\n", stringof("constant"));
	exit(0);
}
