/* Strings are compared by their bytes. */
#pragma D option quiet

BEGIN { a = "abc"; printf("%d%d%d%d%d\n", a == "abc", a < "abd", a > "ab", "B" < "a", a != "ABC"); exit(0); }
