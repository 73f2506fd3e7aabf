/* A char pointer is text where a string is wanted. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(8);
	this->p[0] = 'h';
	this->p[1] = 'i';
	this->p[2] = '\0';
	printf("[%s] %d\n", stringof(this->p), strlen(this->p));
	s = (string)this->p;
	printf("[%s] [%s]\n", s, strjoin(this->p, "!"));
	printf("%d\n", this->p == "hi");
	exit(0);
}
