/* An inline is read where it stands: what a clause before it would assign is not known yet. */
BEGIN
{
	x = 5;
}

inline int Y = x + 1;
