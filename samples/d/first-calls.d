#!/usr/bin/env -S kinst-run -s
/*
 * first-calls.d - each function when it is called for the first time: the story of a boot.
 *
 * The last lines before a hang say how far an image comes. Functions without a name are sub_ADDRESS.
 *
 * USAGE: kinst-run -s samples/d/first-calls.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	US		time since the start, in us
 *	CALLER		who called
 *	FUNCTION	which function
 */

#pragma D option quiet

BEGIN
{
	boot = timestamp;
	printf("%6s  %-40s %s\n", "US", "CALLER", "FUNCTION");
}

fbt:::entry
/!seen[probefunc]/
{
	seen[probefunc] = 1;
	printf("%6d  %-40a %s\n", (timestamp - boot) / 1000, caller, probefunc);
}
