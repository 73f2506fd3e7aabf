/* What functions make anew has a NUL within strsize; strjoin() fails where that is not so. */
#pragma D option quiet
#pragma D option strsize=4

BEGIN
{
	printf("%s %s %s ", basename("abcd"), toupper("abcd"), strtok("abcd", ","));
	printf("%s %s\n", strtok(NULL, ","), strjoin("ab", "c"));
}

BEGIN { printf("%s\n", strjoin("ab", "cd")); }
ERROR { printf("%d\n", arg4 == DTRACEFLT_NOSCRATCH); exit(0); }
