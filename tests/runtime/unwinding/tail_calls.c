/* Every way in which a function that ends with a tail call returns, or does not. No library: `main` is called as it is. */

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

NOINLINE long leaf(long n)
{
	sink = n;
	return n * 2;
}

/* A chain: three functions return at once. */
NOINLINE long middle(long n) { return leaf(n + 1); }
NOINLINE long outer(long n) { return middle(n + 1); }

/* Each enters the other again, on the same frame. */
NOINLINE long even(long n);
NOINLINE long odd(long n) { sink = n; return n ? even(n - 1) : 0; }
NOINLINE long even(long n) { sink = n; return n ? odd(n - 1) : 1; }

/* A tail call below each activation of a recursion. */
NOINLINE long nested(long n)
{
	if (n)
		sink = nested(n - 1) + 1;
	return leaf(n);
}

/* By pointers. */
long (*volatile table[2])(long) = {leaf, outer};
NOINLINE long chosen(long n) { return table[n & 1](n); }

/* Left by longjmp, and called again at the same place with the same stack. */
void *place[5];
NOINLINE long jumps(long n)
{
	sink = n;
	if (n & 1)
		__builtin_longjmp(place, 1);
	return n + 5;
}
NOINLINE long left(long n) { return jumps(n); }
NOINLINE long escapes(long count)
{
	volatile long sum = 0;
	for (volatile long i = 0; i < count; i++)
		if (!__builtin_setjmp(place))
			sum += left(i);
	return sum;
}

/* Two threads that sleep in the callee: they call at the same place, and return in another order. */
struct registers {
	long saved[14];
};
void *stopped[3]; /* stack pointers; the last is that of who starts the threads */
char stacks[2][4096] __attribute__((aligned(4096)));
volatile long current, finished;

void exchange(void **save, void *load);
#if defined(__x86_64__)
enum { RETURNS = 6 };
asm(".type exchange, @function\n"
    "exchange: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, (%rdi); mov %rsi, %rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
    ".size exchange, . - exchange");
#elif defined(__aarch64__)
enum { RETURNS = 11 };
asm(".type exchange, %function\n"
    "exchange: sub sp, sp, #112; stp x19, x20, [sp]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]; stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]\n"
    "mov x9, sp; str x9, [x0]; mov sp, x1\n"
    "ldp x19, x20, [sp]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]; add sp, sp, #112; ret\n"
    ".size exchange, . - exchange");
#else
enum { RETURNS = 12 };
asm(".type exchange, @function\n"
    "exchange: addi sp, sp, -112; sd s0, 0(sp); sd s1, 8(sp); sd s2, 16(sp); sd s3, 24(sp); sd s4, 32(sp)\n"
    "sd s5, 40(sp); sd s6, 48(sp); sd s7, 56(sp); sd s8, 64(sp); sd s9, 72(sp); sd s10, 80(sp); sd s11, 88(sp)\n"
    "sd ra, 96(sp); sd sp, 0(a0); mv sp, a1\n"
    "ld s0, 0(sp); ld s1, 8(sp); ld s2, 16(sp); ld s3, 24(sp); ld s4, 32(sp); ld s5, 40(sp); ld s6, 48(sp)\n"
    "ld s7, 56(sp); ld s8, 64(sp); ld s9, 72(sp); ld s10, 80(sp); ld s11, 88(sp); ld ra, 96(sp)\n"
    "addi sp, sp, 112; ret\n"
    ".size exchange, . - exchange");
#endif

NOINLINE void switch_to(long next)
{
	long before = current;
	current = next;
	exchange(&stopped[before], stopped[next]);
}
NOINLINE long sleeps(long n)
{
	switch_to(2);
	if (n == 1)
		switch_to(2);
	return n + 100;
}
NOINLINE long works(long n) { return sleeps(n); }
NOINLINE void thread(void)
{
	sink = works(current);
	finished++;
	for (;;)
		switch_to(2);
}
NOINLINE long threaded(void)
{
	current = 2;
	for (long number = 0; number < 2; number++) {
		struct registers *first = (void *)(stacks[number] + sizeof(stacks[number]) - sizeof(*first));
		first->saved[RETURNS] = (long)thread;
		stopped[number] = first;
		switch_to(number);
	}
	for (long turn = 0; finished < 2; turn++)
		switch_to((turn + 1) & 1);
	return finished;
}

#ifdef INSTRUMENTED
#define HOOK __attribute__((noinline, no_instrument_function))
HOOK void __cyg_profile_func_enter(void *function, void *caller) { asm volatile("" ::"r"(function), "r"(caller)); }
HOOK void __cyg_profile_func_exit(void *function, void *caller) { asm volatile("" ::"r"(function), "r"(caller)); }
#endif

long main(void)
{
	long sum = outer(1) + even(5) + odd(4) + nested(3);
	for (long i = 0; i < 4; i++)
		sum += chosen(i);
	return sum + escapes(6) + threaded();
}
