/* Counts its own calls, and prints them with the sum of its own code. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char __executable_start[], etext[];
static volatile unsigned works, evens, tails, deeps;

__attribute__((noinline)) unsigned work(unsigned n, const char *name)
{
    works++;
    return n * 3 + name[0];
}

__attribute__((noinline)) unsigned even(unsigned n)
{
    evens++;
    if (n & 1)
        return 1;
    return n > 100 ? 7 : work(n, "abc") + 1;
}

__attribute__((noinline)) unsigned tail(unsigned n)
{
    tails++;
    return work(n + 1, "tail");
}

/* Its stack grows, so that its instructions fault. */
__attribute__((noinline)) unsigned deep(unsigned n)
{
    volatile char big[3000];

    deeps++;
    big[0] = big[2999] = n;
    return n ? deep(n - 1) + big[0] : big[2999];
}

int main(int count, char **words)
{
    unsigned n = count > 1 ? atoi(words[1]) : 10, sum = 0, code = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += even(i) + work(i, "xyz") + tail(i);
        if (i % 16 == 0)
            usleep(1000);
    }
    sum += deep(n);
    for (const char *at = __executable_start; at < etext; at++)
        code = code * 31 + *at;
    printf("COUNTED %s %d work %u even %u tail %u deep %u sum %u code %x\n", words[0], getpid(), works, evens, tails,
           deeps, sum, code);
    return 0;
}
