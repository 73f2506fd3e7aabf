/* A value of an enumeration is compared with its tags, and printed as a number. */
#pragma D option quiet

enum state { IDLE, BUSY = 4 };
enum state s;

BEGIN { s = BUSY; printf("%d %d %d\n", s == BUSY, s != IDLE, s); exit(0); }
