/* What proc and io look at, in the shape that Linux gives it, and a start that does a little of everything. */

#include "tracepoints.h"

typedef unsigned int dev_t;
struct cred {
    struct {
        unsigned int val;
    } uid, euid, gid, egid;
};
struct task_struct {
    int pid, tgid, prio, exit_code;
    char comm[16];
    struct task_struct *real_parent;
    struct cred *cred;
};
struct filename {
    int refcnt;
    const char *name;
};
struct linux_binprm {
    int argc;
    const char *filename, *interp;
};
struct kernel_siginfo {
    struct {
        int si_signo, si_errno, si_code;
        union {
            struct {
                int _pid;
                unsigned int _uid;
            } _kill;
            struct {
                int _pid;
                unsigned int _uid;
                int _status;
            } _sigchld;
            struct {
                void *_addr;
            } _sigfault;
        } _sifields;
    };
};
struct k_sigaction {
    struct {
        unsigned long sa_flags;
        void *sa_handler;
    } sa;
};
struct request_queue {
    void *mq_ops;
};
struct gendisk {
    int major, first_minor;
    char disk_name[32];
    struct request_queue *queue;
};
#ifdef OLD /* 5.10 */
#define BLOCK_DEVICE struct gendisk *bi_disk
#define ON(disk) &disk
#define WITH_QUEUE struct request_queue *queue,
#define QUEUE &requests,
#else
struct block_device {
    struct gendisk *bd_disk;
};
#define BLOCK_DEVICE struct block_device *bi_bdev
#define ON(disk) &on_##disk
#define WITH_QUEUE
#define QUEUE
struct gendisk disk, memory;
struct block_device on_disk = {&disk}, on_memory = {&memory};
#endif
enum flags { __REQ_SYNC = 11 };
struct bio {
    BLOCK_DEVICE;
    unsigned int bi_opf;
    unsigned char bi_status;
    struct {
        unsigned long bi_sector;
        unsigned int bi_size;
    } bi_iter;
    void *bi_end_io;
};
struct request {
    unsigned int __data_len;
    struct bio *bio;
};

volatile int called, sink, init_task;
TRACEPOINT(sched_process_fork, struct task_struct *parent, struct task_struct *child)
TRACEPOINT(sched_process_exec, struct task_struct *task, int old, struct linux_binprm *program)
TRACEPOINT(sched_process_exit, struct task_struct *task)
TRACEPOINT(signal_generate, int signal, struct kernel_siginfo *info, struct task_struct *to, int group, int result)
TRACEPOINT(signal_deliver, int signal, struct kernel_siginfo *info, struct k_sigaction *action)
TRACEPOINT(block_rq_issue, WITH_QUEUE struct request *request)
TRACEPOINT(block_rq_complete, struct request *request, unsigned char error, unsigned int bytes)
TRACEPOINT(block_bio_queue, WITH_QUEUE struct bio *bio)
TRACEPOINT(block_bio_complete, struct request_queue *queue, struct bio *bio)

struct cred root = {{1}, {2}, {3}, {4}};
struct task_struct init = {1, 1, 120, 0, "init", &init, &root};
struct task_struct process = {7, 7, 120, 0, "worker", &init, &root};
struct task_struct thread = {8, 7, 100, 0, "worker", &init, &root};
struct filename path = {1, "/bin/true"};
struct linux_binprm program = {1, "/bin/true", "/lib/ld.so"};
struct kernel_siginfo child = {{17, 0, 1, {._sigchld = {7, 5, 3}}}};
struct k_sigaction handler = {{0, (void *)0x4000}}, ignored = {{0, (void *)1}};
struct request_queue requests = {&requests}, bios;
struct gendisk disk = {254, 16, "vdb", &requests}, memory = {1, 0, "ram0", &bios};
struct bio first = {ON(disk), 0, 0, {2048, 4096}, 0}, later = {ON(disk), 1, 0, {8, 512}, 0};
struct bio copied = {ON(memory), 1 | 1 << __REQ_SYNC, 0, {16, 1024}, 0};
struct request reading = {12288, &first}, writing = {512, &later}, flushing = {0, 0};

__attribute__((noipa)) struct linux_binprm *alloc_bprm(int at, struct filename *name)
{
    sink++;
    return &program;
}
__attribute__((noipa)) int do_execveat_common(int at, struct filename *name, int error)
{
    alloc_bprm(at, name);
    if (!error)
        TRACE(sched_process_exec, 1, &process, 7, &program);
    return -error;
}
__attribute__((noipa)) void schedule_tail(struct task_struct *before)
{
    sink++;
}
__attribute__((noipa, noreturn)) void panic(void)
{
    for (;;)
        sink++;
}
/* A function with a tracepoint whose block lies behind a call that does not come back. */
void ends(struct task_struct *task, int code);
#if defined(__x86_64__)
#define ENDS                                                            \
    "test %esi, %esi\n js 2f\n1: .byte 0x0f,0x1f,0x44,0x00,0x00\n ret\n" \
    "2: call panic\n"                                                   \
    "3: mov %rdi, %rsi\n jmp __traceiter_sched_process_exit\n"
#elif defined(__riscv)
#define ENDS                                                            \
    "bltz a1, 2f\n.option push\n.option norvc\n1: nop\n.option pop\n ret\n" \
    "2: call panic\n"                                                   \
    "3: mv a1, a0\n tail __traceiter_sched_process_exit\n"
#else
#define ENDS                                                            \
    "tbnz w1, #31, 2f\n1: nop\n ret\n"                                  \
    "2: bl panic\n"                                                     \
    "3: mov x1, x0\n b __traceiter_sched_process_exit\n"
#endif
asm(".globl ends\n.type ends, @function\n.balign 4\nends:\n" ENDS ".size ends, . - ends\n"
    ".pushsection __jump_table, \"aw\"\n.balign 8\n"
    ".long 1b - ., 3b - .\n.quad __tracepoint_sched_process_exit + 8 - .\n.popsection\n");

__attribute__((noipa)) void ended(struct task_struct *task, int code)
{
    task->exit_code = code;
    ends(task, code);
}
__attribute__((noipa)) void disks(void)
{
    TRACE(block_bio_queue, 1, QUEUE &first);
    TRACE(block_rq_issue, 1, QUEUE &reading);
    TRACE(block_rq_complete, 1, &reading, 0, 4096);
    reading.__data_len -= 4096;
    first.bi_iter.bi_sector += 8;
    TRACE(block_rq_complete, 1, &reading, 0, 8192);
    TRACE(block_rq_issue, 1, QUEUE &flushing);
    TRACE(block_rq_issue, 1, QUEUE &writing);
    TRACE(block_rq_complete, 1, &writing, 10, 512);
    TRACE(block_bio_complete, 1, &requests, &later);
    TRACE(block_bio_queue, 1, QUEUE &copied);
    copied.bi_status = 10;
    TRACE(block_bio_complete, 1, &bios, &copied);
}
int start(void)
{
    TRACE(sched_process_fork, 1, &init, &process);
    TRACE(sched_process_fork, 1, &process, &thread);
    schedule_tail(&init);
    do_execveat_common(0, &path, 2);
    do_execveat_common(0, &path, 0);
    TRACE(signal_generate, 1, 17, &child, &thread, 0, 0);
    TRACE(signal_generate, 1, 28, 0, &process, 1, 1);
    TRACE(signal_deliver, 1, 17, &child, &handler);
    TRACE(signal_deliver, 1, 17, &child, &ignored);
    TRACE(signal_deliver, 1, 9, 0, &handler);
    ended(&thread, 9);
    ended(&process, 0x300);
    ended(&process, 9);
    ended(&process, 11 | 0x80);
    disks();
    return sink;
}
