/* With -q only the values are printed, one behind the other. */
#pragma D option quiet

BEGIN
{
	trace(1);
	trace("two");
	trace(-3);
	trace((char)4);
	trace((short)5);
	trace(6LL);
	trace('7');
	exit(0);
}
