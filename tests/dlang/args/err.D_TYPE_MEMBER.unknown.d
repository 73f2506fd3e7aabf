/*
 * A member that the argument's struct does not have.
 * @image: kernel
 */
fbt::if_input:entry
{
	trace(args[0]->if_nosuch);
}
