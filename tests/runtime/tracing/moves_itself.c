/* Firmware that copies itself and goes on in the copy, as boot loaders do. */

#define DISTANCE 0x1000000
#define NOINLINE __attribute__((noinline, noclone))

extern char __executable_start[], _end[];
volatile int counter = 7;

NOINLINE int count(int n)
{
	counter += n;
	return counter;
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

NOINLINE void in_the_copy(void)
{
	count(5);
	count(6);
	finish();
}

void start(void)
{
	counter = 100;
	for (char *from = __executable_start; from < _end; from++)
		*(volatile char *)(from + DISTANCE) = *from;
	void (*volatile go_on)(void) = (void (*)(void))((char *)in_the_copy + DISTANCE);
	go_on();
}

#if defined(__riscv)
asm(".globl _start\n_start: la sp, _start + 0x800000\nj start");
#elif defined(__aarch64__)
asm(".globl _start\n_start: adrp x0, _start + 0x800000\nmov sp, x0\nb start");
#else
asm(".globl _start\n_start: lea _start + 0x800000(%rip), %rsp\ncall start");
#endif
