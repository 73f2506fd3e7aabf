/* A key that depends. */
#pragma D option quiet
BEGIN { i = 4; @a[i > 3 ? "big" : "small"] = count(); @a[i > 5 ? "big" : "small"] = count(); exit(0); }
END { printa("%s\n", @a); }
