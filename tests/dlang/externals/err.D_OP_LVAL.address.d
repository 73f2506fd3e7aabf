/*
 * An address is not assigned to.
 * @image: kernel riscv64
 */
BEGIN
{
	&`calls = &`calls;
}
