/*
 * Not a negative one.
 * @image: kernel
 */
fbt::if_input:entry
{
	trace(args[-1]);
}
