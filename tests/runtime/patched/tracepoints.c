/* Tracepoints as Linux has them (include/linux/tracepoint.h), and code that asks for them. Nobody traces here. */

struct tracepoint_func {
    void *func, *data;
};
struct tracepoint {
    const char *name;
    struct {
        int enabled;
        void *type;
    } key;
    int (*regfunc)(void);
    struct tracepoint_func *volatile funcs;
};
struct list {
    struct list *next, *prev;
};
struct trace_event_class {
    const char *system;
};
struct trace_event_call {
    struct list list;
    struct trace_event_class *class;
    struct tracepoint *tp;
    void *rest[4];
};
struct pair {
    int low, high;
};

#if defined(TRACED) && defined(__x86_64__) /* as the kernel writes while it traces */
#define NOP "jmp %l[yes]"
#elif defined(TRACED) && defined(__riscv)
#define NOP ".option push; .option norvc; j %l[yes]; .option pop"
#elif defined(TRACED)
#define NOP "b %l[yes]"
#elif defined(__x86_64__)
#define NOP ".byte 0x0f,0x1f,0x44,0x00,0x00"
#elif defined(__riscv)
#define NOP ".option push; .option norvc; nop; .option pop"
#else
#define NOP "nop"
#endif
#if defined(__riscv)
#define KEY "%0"
#else
#define KEY "%c0"
#endif

#define TRACEPOINT(event, ...)                                                    \
    struct tracepoint __tracepoint_##event = {#event};                            \
    __attribute__((noipa)) int __traceiter_##event(void *data, ##__VA_ARGS__)  \
    {                                                                             \
        return ++called;                                                          \
    }
#define EVENT(event)                                                              \
    struct trace_event_call event_##event = {{0}, &class_of_work, &__tracepoint_##event}; \
    struct trace_event_call *__event_##event                                      \
        __attribute__((used, section("_ftrace_events"))) = &event_##event;
#define TRACE(event, condition, ...)                                              \
    do {                                                                          \
        if (asked(&__tracepoint_##event) && (condition) && __tracepoint_##event.funcs) \
            __traceiter_##event(__tracepoint_##event.funcs->data, ##__VA_ARGS__); \
    } while (0)

static inline __attribute__((always_inline)) int asked(struct tracepoint *one)
{
    asm goto("1: " NOP "\n"
             ".pushsection __jump_table, \"aw\"\n"
             ".balign 8\n"
             ".long 1b - ., %l[yes] - .\n"
             ".quad " KEY " - .\n"
             ".popsection"
             :: "i"(&one->key) :: yes);
    return 0;
yes:
    return 1;
}

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

/* Returns the same, and leaves the same in memory, whether it is probed or not. */
long work(int turns)
{
    struct pair pair = {1, 2};
    long sum = 0;
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
