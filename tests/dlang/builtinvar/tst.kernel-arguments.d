/* Arguments of a function, and what it returns.
   @image: kernel
   @options: -q --console /dev/null */
fbt::fibonacci:entry /arg0 == 5/ { self->in = 1; printf("%s %s %d", probefunc, probename, arg0); }
fbt::fibonacci:entry /self->in/ { n++; }
fbt::fibonacci:return /self->in && arg1 == 5/ { printf(" %s %d %d\n", probename, arg1, n); exit(0); }
