/* Firmware that copies itself to the end of the memory that it is told of, applies its relocations there and goes on,
   as U-Boot does. It may run from ROM until then. */

typedef unsigned long word;
typedef unsigned char byte;
#define NOINLINE __attribute__((noinline, noclone))

extern byte first[] __attribute__((visibility("hidden"))), last[] __attribute__((visibility("hidden")));
extern word relocations[] __attribute__((visibility("hidden"))), relocations_end[] __attribute__((visibility("hidden")));

volatile int total __attribute__((visibility("hidden"))) = 1;

NOINLINE static int both(int n)
{
	asm volatile("" : : : "memory");
	return n * 3 + 1;
}

NOINLINE static int early(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += both(i);
	asm volatile("" : "+r"(sum));
	return sum;
}

NOINLINE static void inner(int n)
{
	total += both(n);
}

NOINLINE static void outer(int n)
{
	inner(n);
	total++;
}

typedef void (*function)(int);
static const function several[] = {outer, inner};

NOINLINE static void finish(void)
{
#if defined(__riscv)
	*(volatile unsigned *)0x100000 = 0x5555;
#elif defined(__aarch64__)
	register word function asm("x0") = 0x84000008;
	asm volatile("hvc #0" : "+r"(function));
#else
	asm volatile("outw %w0, %w1" : : "a"(0x2000), "d"(0x604));
#endif
	for (;;)
		asm volatile("");
}

NOINLINE static void in_the_copy(void)
{
	const function *volatile table = several;
	for (int i = 0; i < 20; i++)
		table[i & 1](i);
	finish();
}

#if defined(__x86_64__)
static word end_of_memory(word tree)
{
	byte low, high;
	asm volatile("outb %1, $0x70; inb $0x71, %0" : "=a"(low) : "0"((byte)0x34));
	asm volatile("outb %1, $0x70; inb $0x71, %0" : "=a"(high) : "0"((byte)0x35));
	return ((word)high << 8 | low) * 0x10000 + 0x1000000;
}
#else
static unsigned big(const byte *at)
{
	return (unsigned)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* The reg of the node memory@, of two cells each. */
NOINLINE static word end_of_memory(word tree)
{
	const byte *at = (const byte *)tree;
	while (!(at[0] == 'm' && at[1] == 'e' && at[2] == 'm' && at[3] == 'o' && at[4] == 'r' && at[5] == 'y' && at[6] == '@'))
		at += 4;
	while (big(at) != 3 || big(at + 4) != 16)
		at += 4;
	return ((word)big(at + 12) << 32 | big(at + 16)) + ((word)big(at + 20) << 32 | big(at + 24));
}
#endif

NOINLINE void start(word tree)
{
	word size = last - first, to = (end_of_memory(tree) - size - ABOVE) & -4096ul, distance = to - (word)first;
	early(5);
	for (word i = 0; i < size; i += sizeof(word))
		*(volatile word *)(to + i) = *(volatile word *)(first + i);
	for (word *one = relocations; one < relocations_end; one += 3)
		*(volatile word *)(one[0] + distance) = one[2] + distance;
	void (*volatile go_on)(void) = (void (*)(void))((word)in_the_copy + distance);
	go_on();
}

#if defined(__riscv)
asm(".section .head, \"ax\"; .globl _start\n_start: li sp, 0x80400000; mv a0, a1; j start");
#elif defined(__aarch64__)
asm(".section .head, \"ax\"; .globl _start\n_start: mov x0, #0x40000000; add x1, x0, #0x400000; mov sp, x1; b start");
#else
asm(".section .head, \"ax\"; .globl _start\n_start: call start");
#endif
