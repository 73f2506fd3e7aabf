/* Floating point and vector registers: kept across switches, system calls and signals; and what they compute. */
#include "program.h"

enum { REGISTERS = BY_MACHINE(16, 32, 32), WIDTH = BY_MACHINE(16, 16, 8) };

typedef struct {
	unsigned char bytes[REGISTERS][WIDTH];
} vectors;

/* Load all registers, do what may disturb them, and store them: in one piece, so that no compiler is between. */
#if defined __x86_64__
#define EACH(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define LOAD(n) "movups " #n "*16(%[in]), %%xmm" #n "\n"
#define STORE(n) "movups %%xmm" #n ", " #n "*16(%[out])\n"
#define NAME(n) "xmm" #n,
#define CALL "syscall\n"
#define CLOBBERS EACH(NAME) "rcx", "r11", "memory"
#elif defined __aarch64__
#define EACH(x)                                                                                                    \
	x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17) x(18)    \
	x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31)
#define LOAD(n) "ldr q" #n ", [%[in], #" #n "*16]\n"
#define STORE(n) "str q" #n ", [%[out], #" #n "*16]\n"
#define NAME(n) "v" #n,
#define CALL "svc #0\n"
#define CLOBBERS EACH(NAME) "memory"
#else
#define EACH(x)                                                                                                    \
	x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17) x(18)    \
	x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31)
#define LOAD(n) "fld f" #n ", " #n "*8(%[in])\n"
#define STORE(n) "fsd f" #n ", " #n "*8(%[out])\n"
#define NAME(n) "f" #n,
#define CALL "ecall\n"
#define CLOBBERS EACH(NAME) "memory"
#endif

static void through(const vectors *in, vectors *out, long number, long first, long second)
{
#if defined __x86_64__
	register long call __asm__("rax") = number;
	register long one __asm__("rdi") = first;
	register long two __asm__("rsi") = second;
#elif defined __aarch64__
	register long call __asm__("x8") = number;
	register long one __asm__("x0") = first;
	register long two __asm__("x1") = second;
#else
	register long call __asm__("a7") = number;
	register long one __asm__("a0") = first;
	register long two __asm__("a1") = second;
#endif
	__asm__ volatile(EACH(LOAD) CALL EACH(STORE)
			 : "+r"(call), "+r"(one), "+r"(two)
			 : [in] "r"(in), [out] "r"(out)
			 : CLOBBERS);
}

static void fill(vectors *all, unsigned seed)
{
	for (int i = 0; i < REGISTERS; i++)
		for (int j = 0; j < WIDTH; j++)
			all->bytes[i][j] = (seed = seed * 1103515245 + 12345) >> 16;
}

static void disturb(int number)
{
	vectors all, out;

	(void)number;
	fill(&all, 999);
	through(&all, &out, SYS_getpid, 0, 0);
}

static void *switching(void *seed)
{
	vectors in, out;
	long wrong = 0;

	for (int i = 0; i < 200; i++) {
		fill(&in, (uintptr_t)seed + i);
		through(&in, &out, SYS_sched_yield, 0, 0);
		wrong += memcmp(&in, &out, sizeof in) != 0;
	}
	return (void *)wrong;
}

static void across_switches(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, switching, (void *)(i * 1000));
	for (int i = 0; i < 4; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		say("thread %d: wrong %ld", i, (long)wrong);
	}
}

static volatile int ticks;

static void tick(int number)
{
	disturb(number);
	ticks++;
}

/* A timer's handler uses the registers while a loop of no calls keeps values in them. */
static void across_interrupts(void)
{
	vectors in, out;
	struct itimerspec every = {{0, 2000000}, {0, 2000000}};
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	volatile int *seen = &ticks;

	signal(SIGUSR1, tick);
	fill(&in, 5);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &every, NULL);
#if defined __x86_64__
#define LOOP "1: cmpl $10, (%[seen])\njb 1b\n"
#elif defined __aarch64__
#define LOOP "1: ldr w9, [%[seen]]\ncmp w9, #10\nb.lt 1b\n"
#else
#define LOOP "li t1, 10\n1: lw t0, (%[seen])\nblt t0, t1, 1b\n"
#endif
	__asm__ volatile(EACH(LOAD) LOOP EACH(STORE)
			 :
			 : [in] "r"(&in), [out] "r"(&out), [seen] "r"(seen)
			 : CLOBBERS, "cc", BY_MACHINE("rax", "x9", "t0"), BY_MACHINE("rcx", "x10", "t1"));
	timer_delete(timer);
	say("kept %d", !memcmp(&in, &out, sizeof in));
}

static void across_signals(void)
{
	vectors in, out;

	signal(SIGUSR1, disturb);
	fill(&in, 1);
	through(&in, &out, SYS_kill, getpid(), SIGUSR1);
	say("kept %d", !memcmp(&in, &out, sizeof in));
}

/* The first vector register in a signal's frame. */
static unsigned char *in_frame(ucontext_t *context)
{
#if defined __x86_64__
	return (void *)context->uc_mcontext.fpregs->_xmm[0].element;
#elif defined __aarch64__
	uint32_t *record = (void *)context->uc_mcontext.__reserved;
	while (record[0] && record[0] != FPSIMD_MAGIC)
		record = (void *)((char *)record + record[1]);
	return (void *)(record + 4);
#else
	return (void *)&context->uc_mcontext.__fpregs.__d.__f[0];
#endif
}

static unsigned char found[WIDTH];

static void change(int number, siginfo_t *information, void *context)
{
	unsigned char *first = in_frame(context);

	(void)number, (void)information;
	memcpy(found, first, WIDTH);
	memset(first, 0x5a, WIDTH);
}

static void in_frames(void)
{
	vectors in, out;
	struct sigaction action = {.sa_sigaction = change, .sa_flags = SA_SIGINFO};

	sigaction(SIGUSR1, &action, NULL);
	fill(&in, 3);
	through(&in, &out, SYS_kill, getpid(), SIGUSR1);
	say("seen %d changed %d others %d", !memcmp(found, in.bytes[0], WIDTH), out.bytes[0][0] == 0x5a,
	    !memcmp(in.bytes[1], out.bytes[1], sizeof in - WIDTH));
}

static unsigned long control(void)
{
	unsigned long value = 0;
#if defined __x86_64__
	unsigned word;
	__asm__ volatile("stmxcsr %0" : "=m"(word));
	value = word;
#elif defined __aarch64__
	__asm__ volatile("mrs %0, fpcr" : "=r"(value));
#else
	__asm__ volatile("frcsr %0" : "=r"(value));
#endif
	return value;
}

static void set_control(unsigned long value)
{
#if defined __x86_64__
	__asm__ volatile("ldmxcsr %0" ::"m"(value));
#elif defined __aarch64__
	__asm__ volatile("msr fpcr, %0" ::"r"(value));
#else
	__asm__ volatile("fscsr %0" ::"r"(value));
#endif
}

static volatile unsigned long in_handler;

static void read_control(int number)
{
	(void)number;
	in_handler = control();
	set_control(BY_MACHINE(0x1f80, 0, 0));
}

static uint64_t bits(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof word);
	return word;
}

static void control_registers(void)
{
	volatile double one = 1, three = 3, big = 1e308, zero = 0, negative = -1;

	signal(SIGUSR1, read_control);
	say("at first %#lx", control());
	for (int mode = 0; mode < 4; mode++) {
		set_control(BY_MACHINE(0x1f80 | mode << 13, mode << 22, mode << 5));
		uint64_t quotient = bits(one / three), down = bits(negative / three);
		raise(SIGUSR1);
		say("mode %d: %016lx %016lx, %#lx, in the handler %#lx", mode, quotient, down, control(), in_handler);
	}
	set_control(BY_MACHINE(0x1f80, 0, 0));
	say("infinity %016lx nan %016lx root %016lx zero %016lx", bits(big * 10), bits(zero / zero),
	    bits(__builtin_sqrt(negative)), bits(zero * negative));
#if defined __x86_64__
	/* Unicorn's SSE has no sticky flags: they came to QEMU later. */
#elif defined __aarch64__
	unsigned long flags;
	__asm__ volatile("mrs %0, fpsr" : "=r"(flags));
	say("flags %#lx", flags);
#else
	say("flags %#lx", control());
#endif
}

static volatile int raised_code, raised_times;

static void raised(int number, siginfo_t *information, void *context)
{
	ucontext_t *frame = context;

	(void)number;
	raised_code = information->si_code;
	raised_times++;
#if defined __x86_64__
	frame->uc_mcontext.fpregs->mxcsr = 0x1f80;
	frame->uc_mcontext.fpregs->cwd = 0x37f;
	frame->uc_mcontext.fpregs->swd = 0;
#else
	(void)frame;
#endif
}

/* What raises no signal where the machine has no traps for it. */
static void exceptions(void)
{
	struct sigaction action = {.sa_sigaction = raised, .sa_flags = SA_SIGINFO};
	volatile long double left = 1, none = 0;

	sigaction(SIGFPE, &action, NULL);
#if defined __x86_64__
	unsigned short word = 0x37f & ~4;
	__asm__ volatile("fldcw %0" ::"m"(word));
#endif
	left = left / none;
	left = left + 1;
	say("long double: code %d times %d", raised_code, raised_times);
}

#if defined __x86_64__
static void instructions(void)
{
	vectors in, out;
	uint64_t flags = 0, counted = 5, checked = 7, moved = 0x1122334455667788;

	fill(&in, 42);
#define TRY(text)                                                                                                  \
	do {                                                                                                       \
		__asm__ volatile(EACH(LOAD) text "\n" EACH(STORE)                                                  \
				 :                                                                                 \
				 : [in] "r"(&in), [out] "r"(&out)                                                  \
				 : "rax", "rcx", "rdx", CLOBBERS);                                                 \
		uint64_t sum = 0;                                                                                  \
		for (size_t i = 0; i < sizeof out; i++)                                                            \
			sum = sum * 131 + ((unsigned char *)&out)[i];                                              \
		say("%s: %016lx", text, sum);                                                                      \
	} while (0)
	TRY("paddsw %%xmm1, %%xmm0");
	TRY("pmaddwd %%xmm1, %%xmm0");
	TRY("psadbw %%xmm1, %%xmm0");
	TRY("pshufb %%xmm1, %%xmm0");
	TRY("palignr $5, %%xmm1, %%xmm0");
	TRY("phaddsw %%xmm1, %%xmm0");
	TRY("pmulhrsw %%xmm1, %%xmm0");
	TRY("pblendvb %%xmm0, %%xmm1, %%xmm2");
	TRY("mpsadbw $3, %%xmm1, %%xmm0");
	TRY("phminposuw %%xmm1, %%xmm0");
	TRY("pcmpistrm $0x4c, %%xmm1, %%xmm2");
	TRY("mov $7, %%eax\nmov $9, %%edx\npcmpestrm $0x18, %%xmm1, %%xmm2");
	TRY("pcmpgtq %%xmm1, %%xmm0");
	TRY("pclmulqdq $0x11, %%xmm1, %%xmm0");
	TRY("aesenc %%xmm1, %%xmm0");
	TRY("aesdeclast %%xmm1, %%xmm0");
	TRY("aeskeygenassist $9, %%xmm1, %%xmm0");
	TRY("cvttps2dq %%xmm1, %%xmm0");
	TRY("cvtdq2pd %%xmm1, %%xmm0");
	TRY("divps %%xmm1, %%xmm0");
	TRY("sqrtpd %%xmm1, %%xmm0");
	TRY("haddpd %%xmm1, %%xmm0");
	TRY("dpps $0xf7, %%xmm1, %%xmm0");
	TRY("roundpd $2, %%xmm1, %%xmm0");
	TRY("cmpps $6, %%xmm1, %%xmm0");
	TRY("movmskps %%xmm1, %%eax\nmovd %%eax, %%xmm3");
	TRY("ptest %%xmm1, %%xmm0\nsetc %%al\nmovd %%eax, %%xmm4");
	__asm__("crc32q %1, %0" : "+r"(checked) : "r"(moved));
	__asm__("popcnt %1, %0" : "=r"(counted) : "r"(moved) : "cc");
	__asm__("bsf %1, %%rax\npushfq\npop %0" : "=r"(flags) : "r"(moved) : "rax", "cc");
	say("crc32 %lx popcnt %lu flags %lx", checked, counted, flags & 0x40);
}
#elif defined __aarch64__
static void instructions(void)
{
	vectors in, out;

	fill(&in, 42);
#define TRY(text)                                                                                                  \
	do {                                                                                                       \
		__asm__ volatile(".arch armv8-a+crypto+crc\n" EACH(LOAD) text "\n" EACH(STORE)                     \
				 :                                                                                 \
				 : [in] "r"(&in), [out] "r"(&out)                                                  \
				 : "x9", "x10", CLOBBERS);                                                         \
		uint64_t sum = 0;                                                                                  \
		for (size_t i = 0; i < sizeof out; i++)                                                            \
			sum = sum * 131 + ((unsigned char *)&out)[i];                                              \
		say("%s: %016lx", text, sum);                                                                      \
	} while (0)
	TRY("aese v0.16b, v1.16b");
	TRY("aesimc v0.16b, v1.16b");
	TRY("sha1c q0, s1, v2.4s");
	TRY("sha256h q0, q1, v2.4s");
	TRY("pmull2 v0.1q, v1.2d, v2.2d");
	TRY("crc32cx w9, w9, xzr\nfmov s0, w9");
	TRY("tbl v0.16b, {v1.16b, v2.16b, v3.16b}, v4.16b");
	TRY("fmla v0.4s, v1.4s, v2.4s");
	TRY("fdiv v0.2d, v1.2d, v2.2d");
	TRY("fsqrt v0.4s, v1.4s");
	TRY("frecpe v0.4s, v1.4s");
	TRY("frsqrts v0.2d, v1.2d, v2.2d");
	TRY("fcvtas v0.2d, v1.2d");
	TRY("fcvtzu x9, d1, #3\nfmov d0, x9");
	TRY("scvtf v0.4s, v1.4s, #7");
	TRY("sqrdmulh v0.8h, v1.8h, v2.8h");
	TRY("uqshrn v0.8b, v1.8h, #3");
	TRY("addv b0, v1.16b");
	TRY("fmaxnmp v0.4s, v1.4s, v2.4s");
	TRY("fcvtn v0.4h, v1.4s");
	TRY("frinta d0, d1");
	TRY("ext v0.16b, v1.16b, v2.16b, #5");
}
#else
static void instructions(void)
{
	vectors in, out;

	fill(&in, 42);
#define TRY(text)                                                                                                  \
	do {                                                                                                       \
		__asm__ volatile(EACH(LOAD) text "\n" EACH(STORE)                                                  \
				 :                                                                                 \
				 : [in] "r"(&in), [out] "r"(&out)                                                  \
				 : "t0", CLOBBERS);                                                                \
		uint64_t sum = 0;                                                                                  \
		for (size_t i = 0; i < sizeof out; i++)                                                            \
			sum = sum * 131 + ((unsigned char *)&out)[i];                                              \
		say("%s: %016lx", text, sum);                                                                      \
	} while (0)
	TRY("fmadd.d f0, f1, f2, f3");
	TRY("fnmsub.d f0, f1, f2, f3");
	TRY("fdiv.d f0, f1, f2");
	TRY("fsqrt.d f0, f1");
	/* Single numbers are not boxed in Unicorn, nor do they have to be: that came to QEMU later. */
	TRY("fcvt.s.d f1, f1\nfcvt.s.d f2, f2\nfmul.s f0, f1, f2");
	TRY("fcvt.l.d t0, f1, rtz\nfmv.d.x f0, t0");
	TRY("fcvt.wu.d t0, f2, rdn\nfmv.d.x f0, t0");
	TRY("fclass.d t0, f1\nfmv.d.x f0, t0");
	TRY("fmin.d f0, f1, f2");
	TRY("fsgnjx.d f0, f1, f2");
	TRY("feq.d t0, f1, f2\nfmv.d.x f0, t0");
	TRY("fmv.x.w t0, f1\nfmv.d.x f0, t0");
}
#endif

const struct part vector_parts[] = {
	{"switches", across_switches}, {"interrupts", across_interrupts}, {"kept", across_signals},
	{"frames", in_frames}, {"rounding", control_registers}, {"exceptions", exceptions},
	{"computing", instructions}, {0}};
