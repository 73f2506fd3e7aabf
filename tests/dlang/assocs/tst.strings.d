/* Elements that are strings; those absent have none. */
#pragma D option quiet

BEGIN { n[1] = "one"; printf("%s %d\n", n[1], n[2] == NULL); n[1] = 0; printf("%d\n", n[1] == NULL); exit(0); }
