/* A string has 33 columns, from the left; a longer one has what it needs. */

BEGIN
{
	trace("short");
	trace("thirty-three columns and a few more");
	trace("end");
	exit(0);
}
