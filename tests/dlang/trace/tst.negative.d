/* Small values are shown as unsigned ones, those of 4 and 8 bytes as signed ones, whatever their type. */

BEGIN
{
	trace((char)-1);
	trace((short)-1);
	trace(-1);
	trace((long)-1);
	trace((unsigned char)255);
	trace((unsigned short)65535);
	trace((unsigned int)4294967295);
	trace((uint64_t)0xffffffffffffffff);
	exit(0);
}
