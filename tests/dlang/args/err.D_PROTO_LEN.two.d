/*
 * One index.
 * @image: kernel
 */
fbt::if_input:entry
{
	trace(args[0, 1]);
}
