/* What was assigned has its type. */
BEGIN
{
	x = 1;
}

string x;
