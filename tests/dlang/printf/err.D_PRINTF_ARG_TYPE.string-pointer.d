/* %s is not for char *, which may lead anywhere. */
BEGIN { printf("%s", (char *)alloca(4)); }
