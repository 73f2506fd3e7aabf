/* In a variable of the clause. */
#pragma D option quiet

BEGIN
{
	this->x = *(uint64_t *)0x1010;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
