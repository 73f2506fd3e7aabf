/* cpu_relax-like functions have no argument 40. @image: kernel */
fbt::kmalloc:entry { trace(args[40]); }
