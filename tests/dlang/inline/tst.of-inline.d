/* An inline of others; constants are folded. */
#pragma D option quiet

inline int a = 4;
inline int b = a * 2 + 1;
inline string s = "text";

BEGIN { printf("%d %s %d\n", b, s, sizeof (b)); exit(0); }
