/* Declarations act as they are read, clauses when all is read: x was a string before it was assigned. */
BEGIN
{
	x = 1;
}

string x;
