/* A guest that works, stores to an address that was given to its compiler, works again, and switches off. */

#define NOINLINE __attribute__((noinline, noclone))

volatile long sum;

NOINLINE void work(long n)
{
	sum += n;
}

NOINLINE void spoil(long value)
{
	*(volatile long *)SPOILED = value;
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

void start(void)
{
	for (long n = 0; n < BEFORE; n++)
		work(n);
	for (long n = 0; n < STORES; n++) {
		spoil(VALUE);
		for (long m = 0; m < BETWEEN; m++)
			work(m);
	}
	finish();
}

#if defined(__riscv)
asm(".globl _start\n_start: la sp, _start + 0x400000\nj start");
#elif defined(__aarch64__)
asm(".globl _start\n_start: adrp x0, _start + 0x400000\nmov sp, x0\nb start");
#else
asm(".globl _start\n_start: lea _start + 0x400000(%rip), %rsp\ncall start");
#endif
