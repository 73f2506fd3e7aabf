/* bcopy() within the memory of a clause, and from a string; its end is copied, too. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(16);
	bcopy("hello", this->p, 6);
	bcopy(this->p + 1, this->p + 8, 5);
	printf("%s %s %d\n", stringof(this->p), stringof(this->p + 8), strlen(stringof(this->p)));
	exit(0);
}
