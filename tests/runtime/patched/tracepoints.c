/* Tracepoints, and code that asks for them. */

#include "tracepoints.h"

struct pair {
    int low, high;
};

volatile int called;
volatile long sink;
static struct trace_event_class class_of_work = {"sample"};

TRACEPOINT(step, int turn, const char *text, unsigned char low, struct pair *pair, long e, long f, long g, long h, long i)
TRACEPOINT(odd, int turn)
TRACEPOINT(helped, int turn)
TRACEPOINT(looked_at)
TRACEPOINT(unused)
TRACEPOINT(looped, int turn)
EVENT(step)
EVENT(odd)
EVENT(helped)

static __attribute__((noipa)) void help(int turn)
{
    sink += turn;
    TRACE(helped, 1, 2 * turn);
}

#ifdef LISTED /* the guest's own tracers, which are called while it traces; the code that asks is still a nop */
static __attribute__((noipa)) int own(void *data, int turn)
{
    sink += turn;
    return 0;
}
static struct tracepoint_func own_tracers[] = {{own}, {own}, {}};
#endif

/* Returns the same, and leaves the same in memory, whether it is probed or not. */
long work(int turns)
{
    struct pair pair = {1, 2};
    long sum = 0;
#ifdef LISTED
    __tracepoint_looped.funcs = own_tracers;
#endif
    for (int turn = 0; turn < turns; turn++) {
        sum += turn * 3;
        pair.high = turn;
        asm volatile("" ::: "memory");
        TRACE(step, 1, turn, "text" + turn % 2, turn - 1, &pair, sum, sum * sum, -turn, 8, turn / 2);
        TRACE(odd, turn & 1, turn);
        if (asked(&__tracepoint_looped)) /* the compiler has put the tracepoint's function here */
            for (struct tracepoint_func *one = __tracepoint_looped.funcs; one && one->func; one++)
                ((int (*)(void *, int))one->func)(one->data, 10 * turn);
        if (asked(&__tracepoint_helped))
            help(turn);
        if (asked(&__tracepoint_looked_at))
            sink++;
        sum += pair.high;
    }
    return sum + 1000 * called + 1000000 * sink;
}
