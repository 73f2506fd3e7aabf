/* What a machine's vectors call, and what the vectors are asked to prove. */
#ifndef TRAP_H
#define TRAP_H

#include "arch.h"
#include "kernel.h"

/*
 * One record of section __ex_table: an instruction that may fault on a bad address, where to go on when it does, and
 * what the interrupted function returns then. The first two are relative to their own place.
 */
struct extable_entry {
    int32_t instruction, fixup, error;
};

void trap_breakpoint(struct trapframe *frame, unsigned size);
void trap_fault(struct trapframe *frame, const char *what, u64 address);
void trap_selftest(void);

/* Assembly: one 64-bit word from or to an address that may be bad; 0 or EFAULT. */
int copyin_word(u64 *word, u64 address);
int copyout_word(u64 word, u64 address);

#endif
