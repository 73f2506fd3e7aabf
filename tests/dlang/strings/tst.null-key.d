/* NULL is no key, neither of an array nor of an aggregation; the empty string is one. */
#pragma D option quiet

self string key;

BEGIN { a[""] = 1; a["x"] = 2; @[""] = count(); }
BEGIN { a[self->key] = 3; printf("never\n"); }
BEGIN { x = a[strchr("abc", 'x')]; printf("never\n"); }
BEGIN { @[self->key] = count(); printf("never\n"); }
BEGIN { self->b[self->key, 1] = 1; printf("never\n"); }
BEGIN { self->key = ""; @[self->key] = count(); printf("%d %d\n", a[self->key], a["x"]); }
BEGIN { printa("[%s] %@d\n", @); exit(0); }
ERROR { printf("%d %x\n", arg4, arg5); }
