/* -f: a function.
   @input: -f
   @image: kernel
   @options: -q --console /dev/null
*/
kmain { printf("%s %s\n", probefunc, probename); exit(0); }
