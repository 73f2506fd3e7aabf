/* A program for Linux that tries what the CPU, its exceptions and the kernel do for it. What it prints has no times and
 * no addresses, so it is the same in every run that is right; QEMU's is the reference. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined __x86_64__
#define BY_MACHINE(amd64, arm64, riscv64) amd64
#elif defined __aarch64__
#define BY_MACHINE(amd64, arm64, riscv64) arm64
#else
#define BY_MACHINE(amd64, arm64, riscv64) riscv64
#endif

struct part {
	const char *name;
	void (*run)(void);
};

/* Each of the files has a table of its parts, which ends with an empty one. */
extern const struct part signal_parts[], fault_parts[], vector_parts[], thread_parts[], memory_parts[], trace_parts[],
	time_parts[], machine_parts[];

/* A line of output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 0, or the name of the error that a system call left in errno. */
const char *outcome(long result);

/* What the last signal that was caught told. */
struct caught {
	int signal, code;
	uintptr_t address, pc;
	unsigned long error; /* amd64: trap number << 32 | error code; arm64: ESR_EL1; riscv64: 0 */
};
/* Run `function`, and return the signal that ended it; `signal` is 0 if none did. */
struct caught catching(void (*function)(void *), void *argument);
/* The program counter that a signal's context has, and how to change it. */
uintptr_t context_pc(const ucontext_t *context);
void set_context_pc(ucontext_t *context, uintptr_t pc);
