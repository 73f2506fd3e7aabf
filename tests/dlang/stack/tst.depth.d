/* A caller is in the stack; the depth counts its frames.
   @image: kernel
   @options: -q --console /dev/null */
fbt::kmalloc:entry { printf("%d %d\n", stackdepth > 3, caller != 0); self->depth = stackdepth; }
fbt::kfree:entry /self->depth/ { exit(0); }
tick-100ms { exit(1); }
fbt::kmalloc:return /self->depth/ { printf("%d\n", stackdepth >= self->depth - 1); exit(0); }
