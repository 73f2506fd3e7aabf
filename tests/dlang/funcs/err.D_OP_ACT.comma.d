/* An action has no value. */

BEGIN
{
	trace((exit(1), 1));
}
