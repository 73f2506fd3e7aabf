/* Every part runs in a process of its own, so that none takes another with it: `program [PART...]`. */
#include "program.h"
#include <sys/prctl.h>

static const struct part *const tables[] = {signal_parts, fault_parts, vector_parts, thread_parts,
					    memory_parts, trace_parts, time_parts, machine_parts};
static const char *name = "";
static sigjmp_buf landing;
static volatile struct caught last;

void say(const char *format, ...)
{
	char line[512];
	int length = snprintf(line, sizeof line, "= %s: ", name);
	va_list arguments;

	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof line - length - 1, format, arguments);
	va_end(arguments);
	line[length++] = '\n';
	if (write(1, line, length) != length)
		_exit(99);
}

const char *outcome(long result)
{
	return result == -1 ? strerrorname_np(errno) : "0";
}

uintptr_t context_pc(const ucontext_t *context)
{
#if defined __x86_64__
	return context->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
	return context->uc_mcontext.pc;
#else
	return context->uc_mcontext.__gregs[REG_PC];
#endif
}

void set_context_pc(ucontext_t *context, uintptr_t pc)
{
#if defined __x86_64__
	context->uc_mcontext.gregs[REG_RIP] = pc;
#elif defined __aarch64__
	context->uc_mcontext.pc = pc;
#else
	context->uc_mcontext.__gregs[REG_PC] = pc;
#endif
}

static unsigned long context_error(const ucontext_t *context)
{
#if defined __x86_64__
	return context->uc_mcontext.gregs[REG_TRAPNO] << 32 | context->uc_mcontext.gregs[REG_ERR];
#elif defined __aarch64__
	/* A chain of records, each with a magic number and its size: asm/sigcontext.h */
	const uint32_t *record = (const void *)context->uc_mcontext.__reserved;

	for (; record[0]; record = (const void *)((const char *)record + record[1]))
		if (record[0] == ESR_MAGIC)
			return *(const uint64_t *)(record + 2);
	return 0;
#else
	(void)context;
	return 0;
#endif
}

static void caught(int number, siginfo_t *information, void *context)
{
	last.signal = number;
	last.code = information->si_code;
	last.address = (uintptr_t)information->si_addr;
	last.pc = context_pc(context);
	last.error = context_error(context);
	siglongjmp(landing, 1);
}

struct caught catching(void (*function)(void *), void *argument)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before[6];

	last.signal = last.code = 0;
	last.address = last.pc = last.error = 0;
	for (int i = 0; i < 6; i++)
		sigaction(numbers[i], &action, &before[i]);
	if (!sigsetjmp(landing, 1))
		function(argument);
	for (int i = 0; i < 6; i++)
		sigaction(numbers[i], &before[i], NULL);
	return (struct caught){last.signal, last.code, last.address, last.pc, last.error};
}

static int is_wanted(const char *part, int count, char **names)
{
	for (int i = 1; i < count; i++)
		if (!strcmp(part, names[i]))
			return 1;
	return count == 1;
}

static void run(const struct part *part)
{
	int status;
	pid_t child = fork();

	name = part->name;
	if (!child) {
		alarm(60);
		part->run();
		exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		say("was ended by signal %d", WTERMSIG(status));
	else if (status)
		say("exit status %d", WEXITSTATUS(status));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(int count, char **names)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct part *part = tables[i]; part->name; part++)
			if (is_wanted(part->name, count, names))
				run(part);
	name = "all";
	say("done");
	return 0;
}
