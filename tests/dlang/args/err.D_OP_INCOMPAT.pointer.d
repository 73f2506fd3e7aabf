/*
 * An argument that is a pointer is no integer.
 * @image: kernel
 */
BEGIN
{
	x = 1;
}

fbt::if_input:entry
{
	x = args[0];
}
