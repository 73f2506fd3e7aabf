/* And behind what was wrong before. */
BEGIN
{
	trace(1 2);
}

#pragma D option nosuch
