/* @arguments: 3 BEGIN

   Arguments in predicates, keys and descriptions. */
#pragma D option quiet
dtrace:::$2 /$1 > 2/ { @[$1, $$2] = sum($1 * 2); printa("%d %s %@d\n", @); }
BEGIN { exit(0); }
