/* What is wrong with a declaration comes before the syntax of what is behind it, */
int x;
string x;

BEGIN
{
	trace(1 2);
}
