/* What is wrong with the arguments of an action comes before that it has no value. */
BEGIN
{
	x = exit();
}
