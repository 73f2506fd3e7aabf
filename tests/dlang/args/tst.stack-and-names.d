/* @image: kernel riscv64

   Names of addresses of the image, and how deep the stack is. */
#pragma D option quiet

int n;
fbt::kmalloc:entry
/n++ == 0/
{
	printf("%s %d %d\n", probefunc, stackdepth > 1, caller != 0);
	func((uintptr_t)&`kmalloc);
	printf(" %a\n", &`kmalloc);
	exit(0);
}
