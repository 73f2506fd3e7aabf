/* Variables of the kernel, at its end. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::heap_report:entry
{
	printf("%d %d %d\n", `allocations, `frees, `failures);
	printf("%d callouts\n", `executed);
}
