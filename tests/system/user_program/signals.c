/* Signals: what handlers are told, masks and queues, stacks of their own, interrupted system calls, children. */
#include "program.h"
#include <sys/ptrace.h>

static volatile int order[32], count;
static volatile uintptr_t where;

static void note(int number)
{
	order[count++] = number;
}

static void told(int number, siginfo_t *information, void *context)
{
	(void)context;
	say("signal %d code %d value %d from me %d", number, information->si_code, information->si_value.sival_int,
	    information->si_pid == getpid());
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigaction(number, &action, NULL);
}

static void what_handlers_are_told(void)
{
	struct sigaction action = {.sa_sigaction = told, .sa_flags = SA_SIGINFO};

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGRTMIN + 1, &action, NULL);
	kill(getpid(), SIGUSR1);
	sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 77});
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = -5});
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	raise(SIGUSR1);
}

static void masks_and_queues(void)
{
	sigset_t set, pending;
	siginfo_t information;
	struct timespec nothing = {0, 0}, little = {0, 1000000};

	handle(SIGUSR1, note, 0);
	handle(SIGUSR2, note, 0);
	handle(SIGRTMIN, note, 0);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 3; i++) {
		raise(SIGRTMIN);
		raise(SIGUSR2);
		raise(SIGUSR1);
	}
	sigpending(&pending);
	say("pending %d %d %d %d", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2),
	    sigismember(&pending, SIGRTMIN), sigismember(&pending, SIGHUP));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	say("taken %d: %d %d %d %d %d", count, order[0] - SIGUSR1, order[1] - SIGUSR1, order[2] - SIGRTMIN,
	    order[3] - SIGRTMIN, order[4] - SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	say("waited for %d", sigtimedwait(&set, &information, &nothing));
	int nobody = sigtimedwait(&set, &information, &little);
	say("waited for nothing: %s", outcome(nobody));
	raise(SIGUSR2);
	sigemptyset(&set);
	count = 0;
	int suspended = sigsuspend(&set);
	say("suspended: %s, %d", outcome(suspended), count);
	handle(SIGUSR1, note, SA_RESETHAND | SA_NODEFER);
	struct sigaction now;
	sigprocmask(SIG_SETMASK, &set, NULL);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &now);
	say("reset %d", now.sa_handler == SIG_DFL);
}

static void mark_stack(int number)
{
	(void)number;
	where = (uintptr_t)__builtin_frame_address(0);
}

static int deeper(volatile char *above)
{
	volatile char page[4096];

	page[0] = above[0];
	return deeper(page) + page[0];
}

static void overflow(void *unused)
{
	char first = 0;

	(void)unused;
	deeper(&first);
}

static void stacks_of_their_own(void)
{
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, now;

	sigaltstack(&stack, NULL);
	handle(SIGUSR1, mark_stack, SA_ONSTACK);
	raise(SIGUSR1);
	say("on its own stack %d", where - (uintptr_t)memory < sizeof memory);
	handle(SIGUSR1, mark_stack, 0);
	raise(SIGUSR1);
	say("on its own stack %d", where - (uintptr_t)memory < sizeof memory);
	for (int i = 0; i < 2; i++) {
		struct caught end = catching(overflow, NULL);
		say("overflow: signal %d code %d", end.signal, end.code);
	}
	sigaltstack(NULL, &now);
	say("flags %d size %zu", now.ss_flags, now.ss_size);
	stack.ss_size = 1024;
	int small = sigaltstack(&stack, NULL);
	say("too small: %s", outcome(small));
}

static void interrupted_calls(void)
{
	int ends[2];
	char letter;

	if (pipe(ends))
		return;
	for (int flags = 0; flags < 2; flags++) {
		pid_t child = fork();
		if (!child) {
			usleep(20000);
			kill(getppid(), SIGUSR1);
			usleep(20000);
			_exit(write(ends[1], "x", 1) != 1);
		}
		handle(SIGUSR1, note, flags ? SA_RESTART : 0);
		count = 0;
		long got = read(ends[0], &letter, 1);
		say("restart %d: read %ld %s after %d signals", flags, got, outcome(got), count);
		waitpid(child, NULL, 0);
	}
	handle(SIGALRM, note, 0);
	ualarm(10000, 0);
	struct timespec want = {5, 0}, left;
	int slept = nanosleep(&want, &left);
	say("sleep: %s, rest is less %d", outcome(slept), left.tv_sec < 5);
}

static void children(void)
{
	siginfo_t information;
	static const int ends[] = {SIGKILL, SIGSEGV, SIGABRT, 0};
	sigset_t set;

	for (int i = 0; i < 4; i++) {
		pid_t child = fork();
		if (!child) {
			if (ends[i])
				raise(ends[i]);
			_exit(42);
		}
		memset(&information, 0, sizeof information);
		waitid(P_PID, child, &information, WEXITED);
		say("code %d status %d", information.si_code, information.si_status);
	}
	pid_t child = fork();
	if (!child)
		for (;;)
			pause();
	int status;
	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
	say("stopped %d by %d", WIFSTOPPED(status), WSTOPSIG(status));
	kill(child, SIGCONT);
	waitpid(child, &status, WCONTINUED);
	say("continued %d", WIFCONTINUED(status));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(child, SIGTERM);
	while (sigwaitinfo(&set, &information) < 0 || information.si_code != CLD_KILLED)
		;
	say("child's signal: code %d status %d", information.si_code, information.si_status);
}

static void nest(int number)
{
	say("enter %d", number - SIGRTMIN);
	if (number < SIGRTMIN + 8)
		raise(number + 1);
	say("leave %d", number - SIGRTMIN);
}

static void nested_handlers(void)
{
	for (int i = 0; i <= 8; i++)
		handle(SIGRTMIN + i, nest, 0);
	raise(SIGRTMIN);
}

const struct part signal_parts[] = {
	{"told", what_handlers_are_told}, {"masks", masks_and_queues}, {"stacks", stacks_of_their_own},
	{"interrupted", interrupted_calls}, {"children", children}, {"nested", nested_handlers}, {0}};
