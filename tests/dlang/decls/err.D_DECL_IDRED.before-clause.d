/* And a declaration at the end comes before clauses at the beginning. */
BEGIN
{
	trace(nothing);
}

int x;
string x;
