/* Keys of several types; each tuple is an element. */
#pragma D option quiet

BEGIN { a["x", 1, 'c'] = 1; a["x", 2, 'c'] = 2; a["y", 1, 'c'] = 3; printf("%d %d %d %d\n", a["x", 1, 'c'], a["x", 2, 'c'], a["y", 1, 'c'], a["z", 9, 'd']); exit(0); }
