/* What a debugger does: stops, registers, memory, breakpoints of its own, single steps, hardware breakpoints. */
#include "program.h"
#include <elf.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <stddef.h>
#include <sys/uio.h>
#include <sys/user.h>

#define trace(request, process, address, data)                                                                     \
	syscall(SYS_ptrace, (long)(request), (long)(process), (long)(address), (long)(data))

/* What is traced: a system call, a call, stores to `watched`, a loop. */
extern char traced_begin[], traced_call[], traced_function[], traced_store[], traced_end[];
volatile uint64_t watched[8] __attribute__((aligned(64)));

#if defined __x86_64__
__asm__(".text\n.balign 16\ntraced_begin:\n"
	"push %rbx\nmov $39, %eax\nsyscall\n"
	"traced_call: call traced_function\n"
	"mov $3, %ecx\n1: dec %ecx\njnz 1b\n"
	"lea watched(%rip), %rdx\nmov $5, %eax\n"
	"traced_store: mov %rax, (%rdx)\nmov (%rdx), %rax\nmovb $1, 9(%rdx)\nmovl $7, 20(%rdx)\n"
	"mov $3, %ecx\nlea 32(%rdx), %rdi\ncld\nrep stosb\n"
	"pushfq\npop %rax\nxor %eax, %eax\ncpuid\nlock incl 40(%rdx)\nrdtsc\nmovups %xmm0, 48(%rdx)\n"
	"push %rax\npopfq\nmov %ss, %eax\nmov %eax, %ss\nnop\nxor %eax, %eax\nmov $200000, %eax\nsyscall\nnop\n"
	"traced_end: pop %rbx\nret\ntraced_function: nop\nret\n");
#elif defined __aarch64__
__asm__(".text\n.balign 16\ntraced_begin:\n"
	"mov x9, x30\nmov x8, #172\nsvc #0\n"
	"traced_call: bl traced_function\n"
	"mov w1, #3\n1: subs w1, w1, #1\nb.ne 1b\n"
	"adrp x2, watched\nadd x2, x2, :lo12:watched\nmov x0, #5\n"
	"traced_store: str x0, [x2]\nldr x0, [x2]\nmov w1, #1\nstrb w1, [x2, #9]\nstr w1, [x2, #20]\n"
	"stp x0, x1, [x2, #32]\nstr q0, [x2, #48]\nmrs x3, midr_el1\nmrs x3, cntvct_el0\nmrs x3, nzcv\nmsr nzcv, x3\n"
	"isb\ndmb sy\ncbz xzr, 2f\nnop\n2: tbnz x3, #63, 3f\n3: mov x8, #10000\nsvc #0\nnop\n"
	"traced_end: mov x30, x9\nret\ntraced_function: nop\nret\n");
#else
__asm__(".text\n.balign 16\ntraced_begin:\n"
	"mv t1, ra\nli a7, 172\necall\n"
	"traced_call: call traced_function\n"
	"li a1, 3\n1: addi a1, a1, -1\nbnez a1, 1b\n"
	"la a2, watched\nli a0, 5\n"
	"traced_store: sd a0, 0(a2)\nld a0, 0(a2)\nsb a0, 9(a2)\nsw a0, 20(a2)\nnop\n"
	"traced_end: mv ra, t1\nret\ntraced_function: nop\nret\n");
#endif

#if defined __x86_64__
typedef struct user_regs_struct registers;
#define PC(r) (r).rip
#elif defined __aarch64__
typedef struct user_regs_struct registers;
#define PC(r) (r).pc
#else
typedef struct user_regs_struct registers;
#define PC(r) (r).pc
#endif

static registers read_registers(pid_t child)
{
	registers all;
	struct iovec buffer = {&all, sizeof all};

	if (trace(PTRACE_GETREGSET, child, NT_PRSTATUS, &buffer))
		memset(&all, 0, sizeof all);
	return all;
}

static long write_registers(pid_t child, registers *all)
{
	struct iovec buffer = {all, sizeof *all};

	return trace(PTRACE_SETREGSET, child, NT_PRSTATUS, &buffer);
}

/* A child that waits to be traced, and then runs `function` and ends with its result. */
static pid_t traced_child(int (*function)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		trace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(function());
	}
	waitpid(child, &status, 0);
	trace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
	return child;
}

static int run_traced(void)
{
	((void (*)(void))traced_begin)();
	return 9;
}

/* Where it is, from the beginning of the traced code; -1 elsewhere. */
static long place(pid_t child)
{
	long offset = PC(read_registers(child)) - (uintptr_t)traced_begin;

	return offset < 0 || offset > 400 ? -1 : offset;
}

static const char *stop_of(pid_t child, int status)
{
	static char text[100];
	siginfo_t information = {0};

	if (WIFEXITED(status))
		snprintf(text, sizeof text, "exit %d", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof text, "killed %d", WTERMSIG(status));
	else {
		trace(PTRACE_GETSIGINFO, child, 0, &information);
		long address = (long)((uintptr_t)information.si_addr - (uintptr_t)traced_begin);
		snprintf(text, sizeof text, "stop %#x code %d address %ld", status >> 8,
			 information.si_code, address < 0 || address > 400 ? -1 : address);
	}
	return text;
}

static int go(pid_t child, int how, int signal)
{
	int status = 0;

	if (trace(how, child, 0, signal) == -1)
		return -1;
	waitpid(child, &status, 0);
	return status;
}

static unsigned char put_breakpoint(pid_t child, uintptr_t address, long *original)
{
	long word = trace(PTRACE_PEEKTEXT, child, address, original);

	(void)word;
	long mask = BY_MACHINE(0xff, 0xffffffff, 0xffff), with = BY_MACHINE(0xcc, 0xd4200000, 0x9002);
	return trace(PTRACE_POKETEXT, child, address, (*original & ~mask) | with);
}

/* Breakpoints that are written into the code, and stepping over them as gdb does. */
static void breakpoints(void)
{
	pid_t child = traced_child(run_traced);
	static char *const places[] = {traced_begin, traced_call, traced_function, traced_store, traced_end};
	long originals[5];

	for (int i = 0; i < 5; i++)
		put_breakpoint(child, (uintptr_t)places[i], &originals[i]);
	for (int i = 0; i < 5; i++) {
		int status = go(child, PTRACE_CONT, 0);
		registers all = read_registers(child);
		say("%s at %ld", stop_of(child, status), place(child));
		PC(all) = (uintptr_t)places[i];
		write_registers(child, &all);
		trace(PTRACE_POKETEXT, child, places[i], originals[i]);
	}
	say("%s", stop_of(child, go(child, PTRACE_CONT, 0)));
}

static int to_begin(pid_t child)
{
	long original;

	put_breakpoint(child, (uintptr_t)traced_begin, &original);
	int status = go(child, PTRACE_CONT, 0);
	registers all = read_registers(child);
	PC(all) = (uintptr_t)traced_begin;
	write_registers(child, &all);
	trace(PTRACE_POKETEXT, child, traced_begin, original);
	return status;
}

static void steps(void)
{
	pid_t child = traced_child(run_traced);

	to_begin(child);
	for (int i = 0; i < 100; i++) {
		int status = go(child, PTRACE_SINGLESTEP, 0);
		if (status == -1) {
			say("no single steps: %s", outcome(-1));
			break;
		}
		long now = place(child);
		say("%s at %ld", stop_of(child, status), now);
		if (now == -1)
			break;
	}
	say("%s", stop_of(child, go(child, PTRACE_CONT, 0)));
}

#ifndef __riscv
static volatile int handled;

static void handler(int number)
{
	(void)number;
	handled++;
}

static int signals_and_faults(void)
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
#if defined __x86_64__
	__asm__ volatile("int3\nnop");
#else
	__asm__ volatile("brk #5\nnop");
#endif
	return handled;
}

/* A step with a signal ends at its handler's first instruction; many steps end where they must. */
static void steps_into_handlers(void)
{
	pid_t child = traced_child(signals_and_faults);
	int status = go(child, PTRACE_CONT, 0);

	say("%s", stop_of(child, status));
	status = go(child, PTRACE_SINGLESTEP, SIGUSR1);
	say("%s in the handler %d", stop_of(child, status), PC(read_registers(child)) - (uintptr_t)handler < 16);
	int count = 0;
	while (count < 3000 && (status = go(child, PTRACE_SINGLESTEP, 0)) == (SIGTRAP << 8 | 0x7f)) {
		siginfo_t information;
		trace(PTRACE_GETSIGINFO, child, 0, &information);
		if (information.si_code != TRAP_TRACE) {
			say("code %d", information.si_code);
			registers all = read_registers(child);
			PC(all) += BY_MACHINE(0, 4, 0);
			write_registers(child, &all);
		}
		count++;
	}
	say("%s, many steps %d", stop_of(child, status), count > 30 && count < 3000);
	go(child, PTRACE_KILL, 0);
}

static int compute(void)
{
	unsigned sum = 1;

	for (int i = 0; i < 200; i++)
		sum = sum * 31 + (sum >> 3) + i;
	return sum & 0x7f;
}

/* A whole computation in single steps: how many there are is the compiler's affair, but the result is not. */
static void many_steps(void)
{
	pid_t child = traced_child(compute);
	int status, count = 0;

	while ((status = go(child, PTRACE_SINGLESTEP, 0)) == (SIGTRAP << 8 | 0x7f))
		count++;
	say("%s expected %d steps %d", stop_of(child, status), compute(), count);
}
#endif

static int some_calls(void)
{
	syscall(SYS_getppid);
	syscall(9999, 1, 2, 3);
	syscall(SYS_close, -1);
	return 4;
}

static void system_calls(void)
{
	pid_t child = traced_child(some_calls);
	int status;

	while ((status = go(child, PTRACE_SYSCALL, 0)) == ((SIGTRAP | 0x80) << 8 | 0x7f)) {
		struct ptrace_syscall_info information = {0};
		trace(PTRACE_GET_SYSCALL_INFO, child, sizeof information, &information);
		if (information.op == PTRACE_SYSCALL_INFO_ENTRY)
			say("call %llu with %lld", information.entry.nr, information.entry.nr == SYS_close ? -1LL : 0);
		else
			say("result is error %d: %lld", information.exit.is_error,
			    information.exit.is_error ? (long long)information.exit.rval : 0);
	}
	say("%s", stop_of(child, status));
}

/* Registers that a tracer writes are what the program has. */
static void changed_registers(void)
{
	pid_t child = traced_child(run_traced);

	to_begin(child);
	registers all = read_registers(child);
	PC(all) = (uintptr_t)traced_store;
#if defined __x86_64__
	all.rdx = (uintptr_t)watched;
	all.rax = 0x1234567890;
	all.rsp -= 8;
#elif defined __aarch64__
	all.regs[2] = (uintptr_t)watched;
	all.regs[0] = 0x1234567890;
#else
	all.a2 = (uintptr_t)watched;
	all.a0 = 0x1234567890;
#endif
	long done = write_registers(child, &all);
	long original;
	put_breakpoint(child, (uintptr_t)traced_end, &original);
	say("write: %s", outcome(done));
	say("%s", stop_of(child, go(child, PTRACE_CONT, 0)));
	long word = 0;
	trace(PTRACE_PEEKDATA, child, watched, &word);
	say("stored %#lx", word);
	go(child, PTRACE_KILL, 0);
}

#if defined __x86_64__
static int step_itself(void);

static volatile int traps, in_traced;

static void count_traps(int number, siginfo_t *information, void *context)
{
	ucontext_t *frame = context;

	(void)number;
	traps++;
	in_traced += information->si_code == TRAP_TRACE;
	if (traps == 5)
		frame->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static int step_itself(void)
{
	struct sigaction action = {.sa_sigaction = count_traps, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile("pushfq\norl $0x100, (%rsp)\npopfq\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop");
	say("its own steps %d, as such %d", traps, in_traced);
	traps = in_traced = 0;
	__asm__ volatile("pushfq\norl $0x100, (%%rsp)\npopfq\nmov $39, %%eax\nsyscall\nnop\npushfq\n"
			 "andl $~0x100, (%%rsp)\npopfq\nnop" ::: "rax", "rcx", "r11", "memory", "cc");
	say("over a system call %d, as such %d", traps, in_traced);
	return 0;
}

static void its_own_steps(void)
{
	step_itself();
}

/* Debug registers as gdb sets them. Of breakpoints only: Unicorn has no watchpoints. */
static void hardware(void)
{
	static const int places[] = {0, 0x5, 0x10, 0x40};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		pid_t child = traced_child(run_traced);
		uintptr_t address = (uintptr_t)traced_call + places[i];
		long set = trace(PTRACE_POKEUSR, child, offsetof(struct user, u_debugreg[i]), address);
		int status;

		set |= trace(PTRACE_POKEUSR, child, offsetof(struct user, u_debugreg[7]), 1 << 2 * i);
		say("number %zu: %s", i, outcome(set));
		for (int j = 0; j < 8 && (status = go(child, PTRACE_CONT, 0)) == (SIGTRAP << 8 | 0x7f); j++) {
			long why = 0;
			trace(PTRACE_PEEKUSR, child, offsetof(struct user, u_debugreg[6]), &why);
			say("%s at %ld status %#lx", stop_of(child, status), place(child), why);
			trace(PTRACE_POKEUSR, child, offsetof(struct user, u_debugreg[6]), 0);
		}
		say("%s", stop_of(child, status));
	}
}
#elif defined __aarch64__
static void its_own_steps(void)
{
}

static void hardware(void)
{
	struct user_hwdebug_state state = {0};
	static const struct {
		int type, place, offset;
		uint32_t control;
	} wanted[] = {{NT_ARM_HW_BREAK, 0, 0, 0x1e5}, {NT_ARM_HW_WATCH, 1, 0, 0x1ff5}, {NT_ARM_HW_WATCH, 1, 0, 0x1fed},
		      {NT_ARM_HW_WATCH, 1, 0, 0x1ffd}, {NT_ARM_HW_WATCH, 1, 8, 0x055}, {NT_ARM_HW_WATCH, 1, 16, 0x1e15},
		      {NT_ARM_HW_WATCH, 1, 16, 0x075}, {NT_ARM_HW_WATCH, 1, 40, 0x1ff5}, {NT_ARM_HW_WATCH, 1, 56, 0x1ff5}};

	for (int i = 0; i < 2; i++) {
		struct iovec buffer = {&state, sizeof state};
		pid_t child = traced_child(run_traced);
		long done = trace(PTRACE_GETREGSET, child, i ? NT_ARM_HW_WATCH : NT_ARM_HW_BREAK, &buffer);
		say("has %s: version %d, %d", outcome(done), state.dbg_info >> 8 & 0xff, state.dbg_info & 0xff);
		go(child, PTRACE_KILL, 0);
	}
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		pid_t child = traced_child(run_traced);
		struct iovec buffer = {&state, offsetof(struct user_hwdebug_state, dbg_regs[1])};
		int status;

		memset(&state, 0, sizeof state);
		state.dbg_regs[0].addr = (wanted[i].place ? (uintptr_t)watched : (uintptr_t)traced_call) + wanted[i].offset;
		state.dbg_regs[0].ctrl = wanted[i].control;
		long done = trace(PTRACE_SETREGSET, child, wanted[i].type, &buffer);
		say("number %zu: %s", i, outcome(done));
		for (int j = 0; j < 8 && (status = go(child, PTRACE_CONT, 0)) == (SIGTRAP << 8 | 0x7f); j++) {
			siginfo_t information;
			trace(PTRACE_GETSIGINFO, child, 0, &information);
			say("%s watched %ld at %ld", stop_of(child, status),
			    wanted[i].place ? (long)((uintptr_t)information.si_addr - (uintptr_t)watched) : 0, place(child));
			memset(&state, 0, sizeof state); /* off, for one step */
			trace(PTRACE_SETREGSET, child, wanted[i].type, &buffer);
			go(child, PTRACE_SINGLESTEP, 0);
			say("a step to %ld", place(child));
			state.dbg_regs[0].addr =
				(wanted[i].place ? (uintptr_t)watched : (uintptr_t)traced_call) + wanted[i].offset;
			state.dbg_regs[0].ctrl = wanted[i].control;
			trace(PTRACE_SETREGSET, child, wanted[i].type, &buffer);
		}
		say("%s", stop_of(child, status));
	}
}
#else
static void its_own_steps(void)
{
}

static void hardware(void)
{
}
#endif

static void __attribute__((noinline)) called(void)
{
	__asm__ volatile("");
}

static int counter(int type, uint64_t config, uint64_t address, int length)
{
	struct perf_event_attr what = {.type = type, .size = sizeof what, .config = config, .exclude_kernel = 1,
				       .exclude_hv = 1};

	if (type == PERF_TYPE_BREAKPOINT) {
		what.bp_type = config;
		what.bp_addr = address;
		what.bp_len = length;
		what.config = 0;
	}
	return syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
}

static void performance(void)
{
	static const char *const names[] = {"cycles", "instructions", "cache", "misses", "branches"};
	uint64_t count = 0;

	for (int i = 0; i < 5; i++) {
		int file = counter(PERF_TYPE_HARDWARE, i, 0, 0);
		say("%s: %s", names[i], outcome(file < 0 ? -1 : 0));
	}
	int file = counter(PERF_TYPE_RAW, 0x11, 0, 0);
	say("raw: %d", file < 0);
	static const int software[] = {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS};
	for (int i = 0; i < 3; i++) {
		file = counter(PERF_TYPE_SOFTWARE, software[i], 0, 0);
		char *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int j = 0; j < 1 << 20; j += 4096)
			page[j] = 1;
		long got = file < 0 ? -1 : read(file, &count, sizeof count);
		say("software %d: %s, %d", i, outcome(got < 0 ? -1 : 0), file >= 0 && count > 0);
	}
	file = counter(PERF_TYPE_BREAKPOINT, 4, (uintptr_t)called, sizeof(long));
	say("breakpoint: %s", outcome(file < 0 ? -1 : 0));
	for (int i = 0; i < 10; i++)
		called();
	if (file >= 0 && read(file, &count, sizeof count) == sizeof count)
		say("calls %lu", count);
#if !defined __x86_64__
	file = counter(PERF_TYPE_BREAKPOINT, 2, (uintptr_t)&watched[1], 4);
	say("watchpoint: %s", outcome(file < 0 ? -1 : 0));
	for (int i = 0; i < 10; i++)
		watched[1] += i;
	if (file >= 0 && read(file, &count, sizeof count) == sizeof count)
		say("stores %lu", count);
#endif
}

const struct part trace_parts[] = {
	{"breakpoints", breakpoints}, {"steps", steps},
#ifndef __riscv
	{"handler-steps", steps_into_handlers}, {"many-steps", many_steps},
#endif
	{"calls", system_calls}, {"registers", changed_registers}, {"own-steps", its_own_steps},
	{"hardware", hardware}, {"performance", performance}, {0}};
