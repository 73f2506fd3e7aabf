/* What is wrong with an option comes before the syntax of what is behind it. */
#pragma D option nosuch

BEGIN
{
	trace(1 2);
}
