/* Bytes from anywhere into scratch memory. */
#pragma D option quiet

BEGIN
{
	this->a = (char *)alloca(6);
	this->b = (char *)alloca(6);
	this->a[0] = 'D'; this->a[1] = '!';
	bcopy(this->a, this->b, 3);
	printf("%s\n", stringof(this->b));
	bcopy("text", this->b, 5);
	printf("%s\n", stringof(this->b));
	exit(0);
}
