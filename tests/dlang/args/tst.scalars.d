/*
 * args[] have the types of the function's parameters.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::vfs_create:entry
{
	printf("[%s] in [%s]: %s, mode %o, uid %d, space %d\n", stringof(args[1]),
	    args[0] == NULL ? "-" : stringof(args[0]->v_name), args[2] == VDIR ? "directory" : "file", args[3], args[4],
	    args[5]);
	n++;
}

fbt::vfs_create:entry
/n == 9/
{
	printf("%d %d %d %d\n", sizeof (args[0]), sizeof (args[2]), sizeof (args[3]), sizeof (args[5]));
	printf("%d %d\n", arg3 == args[3], (struct vnode *)arg0 == args[0]);
	exit(0);
}
