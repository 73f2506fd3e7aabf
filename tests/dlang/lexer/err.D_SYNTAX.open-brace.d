/* The text ends inside of a clause. */
BEGIN
{
	trace(1);
