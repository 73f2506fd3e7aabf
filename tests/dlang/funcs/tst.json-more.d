/* json() by names and indexes. */
#pragma D option quiet

BEGIN { j = "{\"a\": {\"b\": [1, \"two\", true]}, \"c\": null}"; printf("%s %s %s %d\n", json(j, "a.b[0]"), json(j, "a.b[1]"), json(j, "a.b[2]"), json(j, "a.x") == NULL); exit(0); }
