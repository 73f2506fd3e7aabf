/* amd64: a PC. UART, interrupt controllers, interval timer, start of the other CPUs, and the causes of traps. */
#include "callout.h"
#include "cpu.h"
#include "trap.h"

#define UART      0x3f8 /* 16550 */
#define PIC1      0x20
#define PIC2      0xa0
#define PIT       0x40
#define CMOS      0x70
#define PIT_CLOCK 1193182 /* Hz */

#define PM1A_CONTROL     0x604
#define PM1_SLEEP_ENABLE 0x2000

#define UART_LSR      5
#define UART_LSR_THRE 0x20
#define PIC_EOI       0x20
#define CMOS_CPUS     0x5f /* QEMU's and Bochs's: how many CPUs there are beside this one */

#define VECTOR_BREAKPOINT 3
#define VECTOR_PAGE_FAULT 14
#define VECTOR_TIMER      0x20 /* the first PIC's inputs are 0x20 to 0x27 */
#define VECTOR_PIC_END    0x30
#define VECTORS           48
#define VECTOR_STUB       16 /* bytes of code */

#define PF_WRITE 2

#define LAPIC          0xffffffffc0000000ul /* where head.S has mapped it */
#define LAPIC_ICR_LOW  0x300
#define LAPIC_ICR_HIGH 0x310
#define ICR_INIT       0x4500
#define ICR_STARTUP    0x4600
#define ICR_PENDING    0x1000

#define KERNEL_OFFSET 0xffffffff80000000ul
#define AP_PAGE       0x8000 /* of the real-mode start code: any free page below 1 MiB */
#define MSR_GS_BASE   0xc0000101

struct gate {
    u16 offset_low, selector, flags, offset_middle;
    u32 offset_high, zero;
};

extern const u8 vectors[], ap_trampoline[], ap_trampoline_end[];
extern volatile u32 ap_number; /* read by the CPU that starts */

static struct gate idt[VECTORS];

always_inline void out8(u16 port, u8 value)
{
    __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port));
}

always_inline void out16(u16 port, u16 value)
{
    __asm__ volatile("outw %0, %1" ::"a"(value), "Nd"(port));
}

always_inline u8 in8(u16 port)
{
    u8 value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

/* Writes that a device expects one after the other: register offset, value. */
static void out_sequence(u16 port, const u8 (*writes)[2], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        out8(port + writes[i][0], writes[i][1]);
}

static void console_init(void)
{
    static const u8 setup[][2] = {
        {1, 0x00}, /* IER: we poll */
        {3, 0x80}, /* LCR: the divisor's latch */
        {0, 0x01}, /* 115200 baud */
        {1, 0x00},
        {3, 0x03}, /* 8n1 */
        {2, 0x07}, /* FCR: queues on and empty */
    };

    out_sequence(UART, setup, countof(setup));
}

void console_putc(char character)
{
    while ((in8(UART + UART_LSR) & UART_LSR_THRE) == 0)
        cpu_relax();
    out8(UART, (u8)character);
}

/* The PICs come up with their inputs on the vectors of exceptions: move them, and let only the timer through. */
static void pic_init(void)
{
    static const u8 first[][2] = {{0, 0x11}, {1, VECTOR_TIMER}, {1, 0x04}, {1, 0x01}, {1, 0xff}};
    static const u8 second[][2] = {{0, 0x11}, {1, VECTOR_TIMER + 8}, {1, 0x02}, {1, 0x01}, {1, 0xff}};

    out_sequence(PIC1, first, countof(first));
    out_sequence(PIC2, second, countof(second));
}

void timer_start(void)
{
    const u16 divisor = PIT_CLOCK / TICKS_PER_SECOND;
    const u8 setup[][2] = {{3, 0x34}, {0, (u8)divisor}, {0, divisor >> 8}}; /* channel 0, rate generator */

    out_sequence(PIT, setup, countof(setup));
    out8(PIC1 + 1, 0xfe);
}

void timer_stop(void)
{
    out8(PIC1 + 1, 0xff);
}

static void interrupt(unsigned number)
{
    if (number != 0) /* the others are masked: a spurious one, which wants no answer */
        return;
    out8(PIC1, PIC_EOI);
    clock_tick();
}

static u64 fault_address(void)
{
    u64 cr2;

    __asm__ volatile("mov %%cr2, %0" : "=r"(cr2));
    return cr2;
}

void trap_handler(struct trapframe *frame)
{
    if (frame->vector == VECTOR_BREAKPOINT)
        trap_breakpoint(frame, 0); /* a trap: the PC is behind int3 already */
    else if (frame->vector == VECTOR_PAGE_FAULT)
        trap_fault(frame, frame->error & PF_WRITE ? "store fault" : "load fault", fault_address());
    else if (frame->vector >= VECTOR_TIMER && frame->vector < VECTOR_PIC_END)
        interrupt((unsigned)frame->vector - VECTOR_TIMER);
    else
        panic("exception %lu at %p, error 0x%lx", frame->vector, (void *)frame->pc, frame->error);
}

static void idt_init(void)
{
    for (unsigned i = 0; i < VECTORS; i++) {
        u64 stub = (u64)vectors + VECTOR_STUB * i;

        idt[i] = (struct gate){
            .offset_low = (u16)stub,
            .selector = 0x08,
            .flags = 0x8e00, /* present, interrupt gate: interrupts are off in the handler */
            .offset_middle = (u16)(stub >> 16),
            .offset_high = (u32)(stub >> 32),
        };
    }
}

void cpu_init(unsigned number)
{
    const struct {
        u16 limit;
        u64 base;
    } __attribute__((packed)) idt_pointer = {sizeof(idt) - 1, (u64)idt};
    u64 self = (u64)&cpus[number];

    cpus[number].self = &cpus[number];
    cpus[number].number = number;
    __asm__ volatile("wrmsr" ::"c"(MSR_GS_BASE), "a"((u32)self), "d"((u32)(self >> 32)));
    __asm__ volatile("lidt %0" ::"m"(idt_pointer));
}

static void send_interrupt(unsigned cpu, u32 command)
{
    volatile u32 *high = (volatile u32 *)(LAPIC + LAPIC_ICR_HIGH);
    volatile u32 *low = (volatile u32 *)(LAPIC + LAPIC_ICR_LOW);

    *high = cpu << 24;
    *low = command;
    while ((*low & ICR_PENDING) != 0)
        cpu_relax();
}

/* INIT, then the page to start at. One CPU at a time: they share the page and ap_number. */
void cpu_start(unsigned number)
{
    memcpy((void *)(KERNEL_OFFSET + AP_PAGE), ap_trampoline, (size_t)(ap_trampoline_end - ap_trampoline));
    ap_number = number;
    send_interrupt(number, ICR_INIT);
    send_interrupt(number, ICR_STARTUP | AP_PAGE >> 12);
}

static unsigned count_cpus(void)
{
    unsigned others;

    out8(CMOS, CMOS_CPUS);
    others = in8(CMOS + 1);
    return others < NCPU ? others + 1 : 1; /* more than we know, or no such register */
}

void machine_start(void) noreturn;

void machine_start(void)
{
    idt_init();
    cpu_init(0);
    console_init();
    pic_init();
    ncpu = count_cpus();
    kmain();
}

/* Sleep state S5 through ACPI's power management block, at the port where QEMU's boards have it. */
void power_off(void)
{
    out16(PM1A_CONTROL, PM1_SLEEP_ENABLE);
    for (;;)
        cpu_sleep();
}
