/*
 * A function of assembly has an address and no parameters.
 * @image: kernel riscv64
 * @options: --console /dev/null
 */
#pragma D option quiet

BEGIN
{
	printf("%p\n", &`_start);
	exit(0);
}
