/*
 * A symbol that the kernel does not have.
 * @image: kernel
 */
BEGIN
{
	trace(`nosuchsymbol);
}
