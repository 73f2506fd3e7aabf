/* A text of the guest: stringof() has strsize characters of it, copyinstr() one less, or as many as it is told to.
   @image: kernel
   @options: --console /dev/null */
#pragma D option quiet
#pragma D option strsize=6

fbt::vfs_lookup:entry
{
	printf("%s %s ", stringof(args[0]), copyinstr((uintptr_t)args[0]));
	printf("%s %s\n", copyinstr((uintptr_t)args[0], 3), copyinstr((uintptr_t)args[0], 6));
	exit(0);
}
