/* Any expression is traced; its type tells the columns. */

BEGIN
{
	trace(1 + 1);
	trace(1 ? 5 : 6);
	trace(1 == 1);
	trace(strlen("four"));
	trace(sizeof (int));
	trace((1, 2));
	trace(x = 9);
	exit(0);
}
