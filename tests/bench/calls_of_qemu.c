/* Calls of one function in a process of qemu-user: in a loop, or each in a fork, as AFL's fork server makes them.

   Argument: how many, and `fork` for forks. Prints microseconds of user CPU a call. CODE is a file with the function's
   code, INPUT its input. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned long called(unsigned long, const void *, unsigned long);
__asm__(".text\n.balign 16\n.globl called\ncalled: .incbin \"" CODE "\"\n");

static double spent(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec;
}

int main(int argc, char **argv)
{
    long count = atol(argv[1]);
    double start = spent(RUSAGE_SELF) + spent(RUSAGE_CHILDREN);
    for (long i = 0; i < count; i++) {
        pid_t child = argc > 2 ? fork() : 0;
        if (child == 0)
            called(1, INPUT, sizeof INPUT - 1);
        if (argc > 2 && child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    printf("%.3f\n", (spent(RUSAGE_SELF) + spent(RUSAGE_CHILDREN) - start) / count);
    return 0;
}
