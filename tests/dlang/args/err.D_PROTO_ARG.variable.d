/*
 * It is a constant.
 * @image: kernel
 */
fbt::if_input:entry
{
	trace(args[arg1]);
}
