/* Threads and what they are made of: TLS, futexes, robust locks, restartable sequences, vfork, barriers of all CPUs. */
#include "program.h"
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>

enum { THREADS = 8 };

static __thread int own = 17;
static __thread char large[5000] = "initial";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_key_t key;
static volatile int turn, destroyed;
static long counter, atomic;

static void destroy(void *value)
{
	__atomic_add_fetch(&destroyed, (int)(uintptr_t)value, __ATOMIC_SEQ_CST);
}

static void *work(void *argument)
{
	int number = (int)(uintptr_t)argument;

	own += number;
	pthread_setspecific(key, argument);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
		__atomic_add_fetch(&atomic, i, __ATOMIC_RELAXED);
	}
	pthread_mutex_lock(&lock);
	while (turn != number)
		pthread_cond_wait(&changed, &lock);
	say("thread %d: own %d large %s", number, own, large);
	turn++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return (void *)(uintptr_t)(number * number);
}

static void threads(void)
{
	pthread_t all[THREADS];
	long sum = 0;

	pthread_key_create(&key, destroy);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(all[i], &result);
		sum += (uintptr_t)result;
	}
	say("sum %ld counter %ld atomic %ld destroyed %d own %d", sum, counter, atomic, destroyed, own);
}

static long futex(int *word, int operation, int value, const struct timespec *timeout, int *other, int third)
{
	return syscall(SYS_futex, word, operation, value, timeout, other, third);
}

static int words[2];

static void *wait_for_it(void *result)
{
	*(long *)result = futex(&words[0], FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

static void futexes(void)
{
	struct timespec soon = {0, 3000000};
	long result, results[3] = {5, 5, 5}, woken = 0, moved;
	pthread_t all[3];

	result = futex(&words[0], FUTEX_WAIT, 1, NULL, NULL, 0);
	say("another value: %s", outcome(result));
	result = futex(&words[0], FUTEX_WAIT, 0, &soon, NULL, 0);
	say("timeout: %s", outcome(result));
	result = futex((int *)((char *)words + 1), FUTEX_WAIT, 0, &soon, NULL, 0);
	say("misaligned: %s", outcome(result));
	for (int i = 0; i < 3; i++)
		pthread_create(&all[i], NULL, wait_for_it, &results[i]);
	usleep(30000);
	moved = futex(&words[0], FUTEX_CMP_REQUEUE, 1, (void *)5L, &words[1], 0);
	say("woken and moved %ld", moved);
	while (woken < 2)
		woken += futex(&words[1], FUTEX_WAKE, 1, NULL, NULL, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(all[i], NULL);
	say("all woke %d", !results[0] && !results[1] && !results[2]);
}

static pthread_mutex_t special;

static void *die_with_it(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&special);
	return NULL;
}

static void special_locks(void)
{
	pthread_mutexattr_t how;
	pthread_t thread;

	for (int inherits = 0; inherits < 2; inherits++) {
		pthread_mutexattr_init(&how);
		pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
		pthread_mutexattr_setprotocol(&how, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&special, &how);
		pthread_create(&thread, NULL, die_with_it, NULL);
		pthread_join(thread, NULL);
		say("inherits %d: %s", inherits, strerrorname_np(pthread_mutex_lock(&special)));
		pthread_mutex_consistent(&special);
		pthread_mutex_unlock(&special);
		say("then: %d", pthread_mutex_lock(&special));
		pthread_mutex_unlock(&special);
	}
}

/* The kernel's struct rseq and struct rseq_cs, and a sequence that runs until a signal aborts it. */
struct sequence {
	uint32_t version, flags;
	uint64_t start, size, aborted;
} __attribute__((aligned(32)));
struct registered {
	uint32_t cpu_start, cpu;
	uint64_t sequence;
	uint32_t flags, more[3];
} __attribute__((aligned(32)));

enum { SIGNATURE = BY_MACHINE(0x53053053, (int)0xd428bc00, (int)0xf1401073) };

static void ignore(int number)
{
	(void)number;
}

static struct registered area;

static void *restartable_thread(void *unused)
{
	static struct sequence description;
	struct itimerval soon = {{0, 0}, {0, 20000}};
	long done = syscall(SYS_rseq, &area, sizeof area, 0, SIGNATURE);
	unsigned long aborted = 0;

	(void)unused;
	say("registered: %s, on a CPU %d", outcome(done), area.cpu < 64);
	done = syscall(SYS_rseq, &area, sizeof area, 0, SIGNATURE);
	say("again: %s", outcome(done));
	signal(SIGALRM, ignore);
	setitimer(ITIMER_REAL, &soon, NULL);
#if defined __x86_64__
	__asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, 8(%[d])\nlea 3f(%%rip), %%rcx\nmov %%rcx, 24(%[d])\n"
			 "lea 2f(%%rip), %%rcx\nsub %%rax, %%rcx\nmov %%rcx, 16(%[d])\nmov %[d], 8(%[a])\n"
			 "1: jmp 1b\n2: jmp 4f\n.long 0x53053053\n3: mov $1, %[r]\n4:\n"
			 : [r] "+r"(aborted)
			 : [d] "r"(&description), [a] "r"(&area)
			 : "rax", "rcx", "memory");
#elif defined __aarch64__
	__asm__ volatile("adr x9, 1f\nstr x9, [%[d], #8]\nadr x10, 3f\nstr x10, [%[d], #24]\nadr x10, 2f\n"
			 "sub x10, x10, x9\nstr x10, [%[d], #16]\nstr %[d], [%[a], #8]\n"
			 "1: b 1b\n2: b 4f\n.inst 0xd428bc00\n3: mov %[r], #1\n4:\n"
			 : [r] "+r"(aborted)
			 : [d] "r"(&description), [a] "r"(&area)
			 : "x9", "x10", "memory");
#else
	__asm__ volatile("lla t0, 1f\nsd t0, 8(%[d])\nlla t1, 3f\nsd t1, 24(%[d])\nlla t1, 2f\n"
			 "sub t1, t1, t0\nsd t1, 16(%[d])\nsd %[d], 8(%[a])\n"
			 "1: j 1b\n2: j 4f\n.balign 4\n.word 0xf1401073\n3: li %[r], 1\n4:\n"
			 : [r] "+r"(aborted)
			 : [d] "r"(&description), [a] "r"(&area)
			 : "t0", "t1", "memory");
#endif
	say("aborted %lu, forgotten %d", aborted, area.sequence == 0);
	done = syscall(SYS_rseq, &area, sizeof area, 1, SIGNATURE);
	say("unregistered: %s", outcome(done));
	return NULL;
}

/* glibc has registered this thread's where it knows how: a process of `clone` without it has none. */
static int restartable_child(void *unused)
{
	restartable_thread(unused);
	return 0;
}

static void restartable_sequences(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status = -1;
	pid_t child = clone(restartable_child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);

	waitpid(child, &status, 0);
	say("status %d", status);
}

static volatile int shared;

static void vforks(void)
{
	int status;
	pid_t child = vfork();

	if (!child) {
		shared = 5;
		_exit(3);
	}
	waitpid(child, &status, 0);
	say("shared %d status %d", shared, WEXITSTATUS(status));
	char *arguments[] = {"program", "no such part", NULL}, *nothing[] = {NULL};
	int error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, nothing);
	waitpid(child, &status, 0);
	say("spawn %d status %d", error, status);
	error = posix_spawn(&child, "/nowhere", NULL, NULL, arguments, nothing);
	say("spawn of nothing: %s", strerrorname_np(error));
}

static void barriers(void)
{
	long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	say("membarrier knows %#lx", known);
	for (int command = 1; command <= 1 << 8; command <<= 1) {
		long done = syscall(SYS_membarrier, command, 0, 0);
		say("command %#x: %s", command, outcome(done));
	}
}

static void scheduling(void)
{
	cpu_set_t set;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), right = 0;

	sched_getaffinity(0, sizeof set, &set);
	say("CPUs %d, may use %d", cpus, CPU_COUNT(&set));
	for (int i = 0; i < 20 * cpus; i++) {
		CPU_ZERO(&set);
		CPU_SET(i % cpus, &set);
		sched_setaffinity(0, sizeof set, &set);
		right += sched_getcpu() == i % cpus;
	}
	say("moved %d", right);
	struct sched_param first = {.sched_priority = 10};
	int done = sched_setscheduler(0, SCHED_FIFO, &first);
	say("fifo: %s, now %d", outcome(done), sched_getscheduler(0));
	prctl(PR_SET_NAME, "a name");
	char name[17] = "";
	prctl(PR_GET_NAME, name);
	say("name %s", name);
}

static void *forever(void *result)
{
	for (;;)
		pause();
	return result;
}

static void *spin(void *result)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		__asm__ volatile("");
	return result;
}

static void cancellation(void)
{
	pthread_t thread;
	void *result;

	for (int i = 0; i < 4; i++) {
		pthread_create(&thread, NULL, i & 1 ? spin : forever, NULL);
		usleep(2000);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		say("cancelled %d", result == PTHREAD_CANCELED);
	}
}

const struct part thread_parts[] = {
	{"threads", threads}, {"futexes", futexes}, {"locks", special_locks}, {"sequences", restartable_sequences},
	{"vforks", vforks}, {"barriers", barriers}, {"scheduling", scheduling}, {"cancellation", cancellation}, {0}};
