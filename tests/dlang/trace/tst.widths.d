/* Without -q numbers have the columns that their size needs, behind a blank. */

BEGIN
{
	trace((char)1);
	trace((short)2);
	trace(3);
	trace((long)4);
	trace((long long)5);
	exit(0);
}
