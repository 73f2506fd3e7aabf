/* They are values as others. */
#pragma D option quiet
BEGIN { x = id + epid; self->name = probename; @a[probename, id] = count(); printf("%d %s %d\n", x, self->name, strlen(probeprov)); exit(0); }
END { printa("%s %d %@d\n", @a); }
