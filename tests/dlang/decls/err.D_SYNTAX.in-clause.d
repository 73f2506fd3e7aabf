/* Declarations stand outside of clauses. */
BEGIN
{
	int x;
	x = 1;
}
