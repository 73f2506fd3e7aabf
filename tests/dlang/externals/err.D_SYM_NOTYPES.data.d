/*
 * Data of assembly: nothing but its address is known.
 * @image: kernel arm64
 */
BEGIN
{
	trace(`translation_table);
}
