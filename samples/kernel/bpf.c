/* The filter's interpreter: its switch is a jump table. Built without frame pointers. */
#include "bpf.h"

always_inline bool in_packet(u32 offset, u32 bytes, u32 size)
{
    if (bytes > size)
        return false;
    return offset <= size - bytes;
}

/* Big-endian, as packets are; false when the packet is too short. */
always_inline bool load(const u8 *packet, u32 size, u32 offset, u32 bytes, u32 *value)
{
    if (!in_packet(offset, bytes, size))
        return false;
    *value = 0;
    for (u32 i = 0; i < bytes; i++)
        *value = *value << 8 | packet[offset + i];
    return true;
}

u32 bpf_filter(const struct bpf_insn *program, const u8 *packet, u32 size)
{
    u32 a = 0;

    for (const struct bpf_insn *insn = program;; insn++) {
        switch (insn->code) {
        case BPF_LDB:
            if (!load(packet, size, insn->k, 1, &a))
                return 0;
            break;
        case BPF_LDH:
            if (!load(packet, size, insn->k, 2, &a))
                return 0;
            break;
        case BPF_LDW:
            if (!load(packet, size, insn->k, 4, &a))
                return 0;
            break;
        case BPF_LDLEN:
            a = size;
            break;
        case BPF_AND:
            a &= insn->k;
            break;
        case BPF_ADD:
            a += insn->k;
            break;
        case BPF_RSH:
            a >>= insn->k;
            break;
        case BPF_JEQ:
            insn += a == insn->k ? insn->jt : insn->jf;
            break;
        case BPF_JGT:
            insn += a > insn->k ? insn->jt : insn->jf;
            break;
        case BPF_JA:
            insn += insn->k;
            break;
        case BPF_RET:
            return insn->k;
        default:
            return 0;
        }
    }
}
