/* Tracepoints as Linux has them (include/linux/tracepoint.h). Nobody traces. */

extern volatile int called;

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
