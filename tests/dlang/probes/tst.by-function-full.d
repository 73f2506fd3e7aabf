/* -f: module, provider and function.
   @input: -f
   @image: kernel
   @options: -q --console /dev/null
*/
fbt::fibonacci /arg0 == 2/ { printf("%s %s %s\n", probeprov, probefunc, probename); exit(0); }
