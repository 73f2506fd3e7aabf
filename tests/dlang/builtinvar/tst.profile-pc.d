/* A timer's arg0 is where the kernel is.
   @image: kernel
   @options: -q --console /dev/null */
profile-1ms { printf("%d %d\n", arg0 != 0, arg1); exit(0); }
