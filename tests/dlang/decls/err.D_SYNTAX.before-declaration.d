/* and behind what was wrong before. */
int x;

BEGIN
{
	trace(1 2);
}

string x;
