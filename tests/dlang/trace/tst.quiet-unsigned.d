/* The same with -q. */
#pragma D option quiet

BEGIN
{
	trace((char)-1);
	trace(" ");
	trace((short)-2);
	trace(" ");
	trace((unsigned int)4294967295);
	trace(" ");
	trace((uint64_t)0xffffffffffffffff);
	exit(0);
}
