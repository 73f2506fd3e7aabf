/* Reaches its own static probes, and prints how often, what their arguments add up to, and what it sees of semaphores. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes.h"

SEMAPHORE(noted, guarded);
static long table[16];
static unsigned steps, guarded;
static long long sum;

__attribute__((noinline)) void step(unsigned n, const char *name, unsigned char small, short negative, long wide)
{
    steps++;
    table[n & 15] = wide;
    sum += n + small + negative + table[n & 15] + 42;
    PROBE6(noted, step__done, "0", n, name, small, negative, table[n & 15], 42);
}

static void guard(unsigned n, const char *name)
{
    if (noted_guarded_semaphore) {
        guarded++;
        PROBE2(noted, guarded, "noted_guarded_semaphore", n, name);
    }
}

/* What is in memory, as it is read by another way than loads. */
static unsigned in_memory(void)
{
    unsigned short value = 9;
    int file = open("/proc/self/mem", O_RDONLY);

    if (pread(file, &value, sizeof value, (off_t)(uintptr_t)&noted_guarded_semaphore) != sizeof value)
        value = 99;
    close(file);
    return value;
}

int main(int count, char **words)
{
    unsigned n = count > 1 ? atoi(words[1]) : 10;
    int child = count > 2 ? 0 : fork();

    if (!child)
        n += 5;
    for (unsigned i = 0; i < n; i++) {
        step(i, words[0], i * 7, -(int)i, (1l << 40) - i);
        guard(i, words[0]);
        if (i % 8 == 0)
            usleep(1000);
    }
    if (child)
        wait(NULL);
    noted_guarded_semaphore++;
    noted_guarded_semaphore--;
    printf("NOTED %s %d steps %u guarded %u sum %lld seen %u there %u\n", words[0], getpid(), steps, guarded, sum,
           noted_guarded_semaphore, in_memory());
    return 0;
}
