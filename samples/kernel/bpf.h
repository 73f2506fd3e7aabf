/* A packet filter: a program for a small accumulator machine that says how much of a packet to take. */
#ifndef BPF_H
#define BPF_H

#include "kernel.h"

enum bpf_opcode { BPF_LDB, BPF_LDH, BPF_LDW, BPF_LDLEN, BPF_AND, BPF_ADD, BPF_RSH, BPF_JEQ, BPF_JGT, BPF_JA, BPF_RET };

struct bpf_insn {
    u8 code;
    u8 jt, jf; /* how many instructions to skip when true, when false */
    u32 k;
};

u32 bpf_filter(const struct bpf_insn *program, const u8 *packet, u32 size);

#endif
