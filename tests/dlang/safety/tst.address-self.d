/* In a variable of the thread. */
#pragma D option quiet

BEGIN
{
	self->x = *(uint8_t *)0x1003;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
