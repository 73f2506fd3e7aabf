/* strsize is what a string has; stringof makes one of bytes. */
#pragma D option quiet

BEGIN { s = "abc"; this->p = (char *)alloca(4); this->p[0] = 'x'; printf("%d %d %s\n", sizeof (s), strlen(s), stringof(this->p)); exit(0); }
