/* An inline with parameters may give text. */
#pragma D option quiet

inline string word[int n] = n == 1 ? "one" : n == 2 ? "two" : "many";

BEGIN { printf("%s %s %s\n", word[1], word[2], word[3]); exit(0); }
