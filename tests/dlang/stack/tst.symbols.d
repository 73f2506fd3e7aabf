/* Names of functions: as an action, with %a, as a key.
   @image: kernel
   @options: -q --console /dev/null */
fbt::kmain:entry { this->f = probefunc; }
fbt::vfs_init:entry { printf("%s\n", probefunc); @f[probefunc] = count(); exit(0); }
