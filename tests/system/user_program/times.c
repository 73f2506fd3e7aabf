/* Clocks and timers: that they go, in the right order, and that what they start comes; never how long it took. */
#include "program.h"
#include <sys/auxv.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static volatile int ticks;

static void tick(int number)
{
	(void)number;
	ticks++;
}

static int64_t ns(const struct timespec *time)
{
	return time->tv_sec * 1000000000LL + time->tv_nsec;
}

static int64_t now(clockid_t clock)
{
	struct timespec time = {0};

	clock_gettime(clock, &time);
	return ns(&time);
}

static void clocks(void)
{
	static const clockid_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 99};
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
	struct timespec before, between, after, step;

	say("vdso %d %.4s", vdso != 0, (const char *)(vdso ? vdso : (unsigned long)"none") + (vdso != 0));
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		long done = syscall(SYS_clock_gettime, all[i], &before);
		int user = clock_gettime(all[i], &between);
		syscall(SYS_clock_gettime, all[i], &after);
		int steps = clock_getres(all[i], &step);
		say("clock %d: %s %d, in order %d, resolution %d %ld", all[i], outcome(done), user,
		    done || (ns(&before) <= ns(&between) && ns(&between) <= ns(&after)), steps,
		    steps ? 0 : step.tv_nsec);
	}
	int backwards = 0, moves = 0;
	int64_t last = now(CLOCK_MONOTONIC);
	for (int i = 0; i < 20000; i++) {
		int64_t next = now(CLOCK_MONOTONIC);
		backwards += next < last;
		moves += next > last;
		last = next;
	}
	say("backwards %d moves %d", backwards, moves > 100);
	struct timeval time;
	gettimeofday(&time, NULL);
	int64_t real = now(CLOCK_REALTIME);
	say("the same clock %d", real - (time.tv_sec * 1000000000LL + time.tv_usec * 1000LL) < 1000000000LL);
	unsigned cpu = 99, node = 99;
	syscall(SYS_getcpu, &cpu, &node, NULL);
	say("on a CPU %d of node %u", cpu < 64, node);
}

static void sleeps(void)
{
	static const long wanted[] = {0, 1, 1000, 100000, 3000000};

	for (int i = 0; i < 5; i++) {
		struct timespec time = {0, wanted[i]};
		int64_t start = now(CLOCK_MONOTONIC);
		int done = nanosleep(&time, NULL);
		say("sleep %ld: %d, long enough %d", wanted[i], done, now(CLOCK_MONOTONIC) - start >= wanted[i]);
	}
	struct timespec past = {1, 0}, wrong = {0, 1000000000};
	say("until the past: %d, wrong: %d", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL),
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL));
}

/* Wait for ticks by using the CPU: some timers count only that. */
static void burn(int wanted)
{
	volatile unsigned long sum = 0;

	while (ticks < wanted)
		sum += sum * 3 + 1;
}

static void timers(void)
{
	static const clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID,
					CLOCK_THREAD_CPUTIME_ID};

	signal(SIGUSR1, tick);
	for (int i = 0; i < 5; i++) {
		struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
		struct itimerspec every = {{0, 4000000}, {0, 4000000}}, left;
		timer_t timer;

		ticks = 0;
		int done = timer_create(all[i], &event, &timer);
		timer_settime(timer, 0, &every, NULL);
		burn(3);
		timer_gettime(timer, &left);
		say("clock %d: %d, interval %ld, rest %d", all[i], done, left.it_interval.tv_nsec,
		    left.it_value.tv_nsec <= 4000000);
		timer_delete(timer);
	}
	static const int kinds[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}, numbers[] = {SIGALRM, SIGVTALRM, SIGPROF};
	for (int i = 0; i < 3; i++) {
		struct itimerval every = {{0, 8000}, {0, 8000}}, never = {0}, left;

		ticks = 0;
		signal(numbers[i], tick);
		setitimer(kinds[i], &every, NULL);
		burn(3);
		setitimer(kinds[i], &never, &left);
		say("interval timer %d: interval %ld, ticks %d", kinds[i], left.it_interval.tv_usec, ticks >= 3);
	}
}

static void *in_thread(void *unused)
{
	return unused;
}

static void notified(union sigval value)
{
	ticks += value.sival_int;
}

static void other_timers(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified,
				 .sigev_value.sival_int = 10};
	struct itimerspec once = {{0, 0}, {0, 2000000}}, every = {{0, 2000000}, {0, 2000000}};
	pthread_t thread;
	timer_t timer;
	uint64_t count = 0;

	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &once, NULL);
	while (!ticks)
		usleep(1000);
	say("in a thread %d", ticks);
	int file = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(file, 0, &every, NULL);
	usleep(10000);
	long got = read(file, &count, sizeof count);
	say("file: %ld, several %d", got, count >= 3);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &every, NULL);
	usleep(20000);
	siginfo_t information;
	sigwaitinfo(&set, &information);
	say("overrun %d code %d", information.si_overrun >= 3, information.si_code);
}

static void cpu_times(void)
{
	int64_t wall = now(CLOCK_MONOTONIC), start = now(CLOCK_PROCESS_CPUTIME_ID);

	for (volatile int i = 0; i < 200000; i++)
		;
	int64_t spent = now(CLOCK_PROCESS_CPUTIME_ID) - start, passed = now(CLOCK_MONOTONIC) - wall;
	say("spent %d, not more than passed %d", spent > 0, spent <= passed);
	start = now(CLOCK_PROCESS_CPUTIME_ID);
	usleep(50000);
	say("asleep %d", now(CLOCK_PROCESS_CPUTIME_ID) - start < 40000000);
}

const struct part time_parts[] = {
	{"clocks", clocks}, {"sleeps", sleeps}, {"timers", timers}, {"others", other_timers}, {"cpu-times", cpu_times}, {0}};
