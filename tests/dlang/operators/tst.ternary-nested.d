/* Conditions in conditions, from the right. */
#pragma D option quiet

BEGIN { x = 2; printf("%s\n", x == 1 ? "one" : x == 2 ? "two" : "many"); printf("%d\n", (x > 1 ? 10 : 20) + 1); exit(0); }
