/* Three words, of which the last is a class. */
#pragma D attributes Stable/Stable/Stable x
inline int x = 1;

BEGIN { exit(0); }
