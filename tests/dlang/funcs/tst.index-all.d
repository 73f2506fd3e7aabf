/* index() and rindex() from positions. */
#pragma D option quiet

BEGIN { s = "banana"; printf("%d %d %d %d %d\n", index(s, "an"), index(s, "an", 2), rindex(s, "an"), rindex(s, "an", 2), index(s, "x")); exit(0); }
