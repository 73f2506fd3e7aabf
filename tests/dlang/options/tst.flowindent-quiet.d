/* With -q the lines stay, and what newlines there are is the program's matter.
   @image: kernel
   @options: -F -q --console /dev/null */
fbt::fibonacci:entry /arg0 == 2/ { self->flow = 1; }
fbt::fibonacci:entry /self->flow/ { printf("%d\n", arg0); }
fbt::fibonacci:return /self->flow/ { printf("= %d\n", arg1); }
fbt::fibonacci:entry /self->flow && arg0 == 1/ { exit(0); }
