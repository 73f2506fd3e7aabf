/* A kernel that loads one module, calls it, and then loads another one to the same place. ONE and TWO are the addresses
   of their functions `first`, PLACE is where they are linked. */

#define NOINLINE __attribute__((noinline, noclone))

extern char one[], one_end[], two[], two_end[];

NOINLINE void report(int value)
{
	asm volatile("" : : "r"(value));
}

NOINLINE void finish(void)
{
#if defined(__riscv)
	*(volatile unsigned *)0x100000 = 0x5555;
#elif defined(__aarch64__)
	register unsigned long function asm("x0") = 0x84000008;
	asm volatile("hvc #0" : "+r"(function));
#else
	asm volatile("outb %b0, $0xf4" : : "a"(0));
#endif
	for (;;)
		;
}

NOINLINE void load(const char *from, const char *end)
{
	for (volatile char *to = (char *)PLACE; from < end; from++)
		*to++ = *from;
}

void start(void)
{
	load(one, one_end);
	report(((int (*)(int))ONE)(5));
	report(((int (*)(int))ONE)(6));
	load(two, two_end);
	report(((int (*)(int))TWO)(7));
	load(one, one_end);
	report(((int (*)(int))ONE)(8));
	finish();
}

asm(".globl one, one_end, two, two_end\n.pushsection .rodata\none: .incbin \"one.bin\"\none_end:\n"
    "two: .incbin \"two.bin\"\ntwo_end:\n.popsection");
#if defined(__riscv)
asm(".globl _start\n_start: la sp, _start + 0x800000\nj start");
#elif defined(__aarch64__)
asm(".globl _start\n_start: adrp x0, _start + 0x800000\nmov sp, x0\nb start");
#else
asm(".globl _start\n_start: lea _start + 0x800000(%rip), %rsp\ncall start");
#endif
