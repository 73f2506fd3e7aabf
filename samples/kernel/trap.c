/* What all machines do about a trap once their vectors have saved a frame and told its cause. */
#include "trap.h"

#include "cpu.h"

#define BAD_ADDRESS 0x700000000000ul /* no memory there on any of the machines */

extern const struct extable_entry extable_start[], extable_end[];

static unsigned breakpoints, fixups;

always_inline u64 extable_address(const int32_t *relative)
{
    return (u64)relative + (u64)(int64_t)*relative;
}

static const struct extable_entry *extable_search(u64 pc)
{
    for (const struct extable_entry *entry = extable_start; entry < extable_end; entry++)
        if (extable_address(&entry->instruction) == pc)
            return entry;
    return NULL;
}

void trap_fault(struct trapframe *frame, const char *what, u64 address)
{
    const struct extable_entry *entry = extable_search(frame->pc);

    if (entry == NULL)
        panic("%s at %p, address 0x%lx, called from 0x%lx", what, (void *)frame->pc, address, trapframe_caller(frame));
    fixups++;
    frame->pc = extable_address(&entry->fixup);
    *trapframe_result(frame) = (u64)entry->error;
}

/* `size` is what the PC has to move by, 0 where the machine has moved it already. */
void trap_breakpoint(struct trapframe *frame, unsigned size)
{
    breakpoints++;
    frame->pc += size;
}

/* Last thing before the end, with the clock stopped: so the machine's trap registers are left the same each time. */
void trap_selftest(void)
{
    u64 word = 0x1234, copy = 0;
    int good, bad_load, bad_store;

    for (int i = 0; i < 3; i++)
        breakpoint();
    good = copyin_word(&copy, (u64)&word);
    bad_load = copyin_word(&copy, BAD_ADDRESS);
    bad_store = copyout_word(word, BAD_ADDRESS);
    printk("trap: %u breakpoints, copyin %d 0x%lx, bad copyin %d, bad copyout %d, %u faults fixed up\n",
           breakpoints, good, copy, bad_load, bad_store, fixups);
    total(breakpoints);
    total(fixups);
    total(copy);
    total((u64)(bad_load + bad_store));
}
