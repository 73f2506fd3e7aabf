/* Tabs and newlines are text. */
#pragma D option quiet

BEGIN
{
	trace("a\tb\nc");
	exit(0);
}
