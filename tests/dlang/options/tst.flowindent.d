/* flowindent: entries go in, returns go out; a return right before another clause's record of it does not yet.
   @image: kernel
   @options: -F --console /dev/null */
fbt::fibonacci:entry /arg0 == 3/ { self->flow = 1; }
fbt::fibonacci:entry, fbt::fibonacci:return /self->flow/ { }
fbt::fibonacci:return /self->flow && arg1 == 2/ { exit(0); }
