/* The empty string has its columns, too. */

BEGIN
{
	trace("");
	trace(1);
	exit(0);
}
