/* A plugin for QEMU that counts how often instructions are executed: what a user would take for it there.
 *
 * -plugin count_calls.so,at=ADDRESSES,to=COUNTS: both are files of 64-bit words, the addresses ascending. With one CPU
 * nothing is called when one is executed: QEMU adds to its word in the translated code. With several that would lose
 * some, since it does not lock the bus; a function is called then, which does. QEMU installs no header everywhere; this
 * is version 1 of its interface, that of QEMU 4.2 to 8.2.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block;
struct instruction;
struct about {
    const char *target;
    struct {
        int min, cur;
    } version;
    bool is_system;
    union {
        struct {
            int cpus, most_cpus;
        } system;
    };
};
enum inline_operation { ADD };
enum registers_used { NO_REGISTERS };

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*call)(uint64_t id, struct block *));
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *), void *given);
extern size_t qemu_plugin_tb_n_insns(const struct block *);
extern struct instruction *qemu_plugin_tb_get_insn(const struct block *, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const struct instruction *);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct instruction *, enum inline_operation, void *word, uint64_t);
extern void qemu_plugin_register_vcpu_insn_exec_cb(
    struct instruction *, void (*call)(unsigned cpu, void *given), enum registers_used, void *given);

int qemu_plugin_version = 1;

static uint64_t *addresses, *counts;
static size_t number;
static bool is_alone;
static const char *result;

static int compare(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

static void executed(unsigned cpu, void *count)
{
    __atomic_fetch_add((uint64_t *)count, 1, __ATOMIC_RELAXED);
}

static void translated(uint64_t id, struct block *block)
{
    for (size_t index = 0; index < qemu_plugin_tb_n_insns(block); index++) {
        struct instruction *instruction = qemu_plugin_tb_get_insn(block, index);
        uint64_t at = qemu_plugin_insn_vaddr(instruction);
        uint64_t *found = bsearch(&at, addresses, number, sizeof at, compare);
        if (found != NULL && is_alone)
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD, &counts[found - addresses], 1);
        else if (found != NULL)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, &counts[found - addresses]);
    }
}

static void write_counts(uint64_t id, void *given)
{
    FILE *file = fopen(result, "wb");
    if (file == NULL || fwrite(counts, sizeof *counts, number, file) != number || fclose(file) != 0)
        perror(result);
}

static int read_addresses(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0)
        return -1;
    rewind(file);
    number = size / sizeof *addresses;
    addresses = malloc(size + 1);
    counts = calloc(number + 1, sizeof *counts);
    if (addresses == NULL || counts == NULL || fread(addresses, sizeof *addresses, number, file) != number)
        return -1;
    return fclose(file);
}

int qemu_plugin_install(uint64_t id, const struct about *about, int argc, char **argv)
{
    const char *from = NULL;
    for (int index = 0; index < argc; index++) {
        if (strncmp(argv[index], "at=", 3) == 0)
            from = argv[index] + 3;
        if (strncmp(argv[index], "to=", 3) == 0)
            result = argv[index] + 3;
    }
    if (from == NULL || result == NULL || read_addresses(from) != 0) {
        perror(from == NULL ? "at= and to= are needed" : from);
        return 1;
    }
    is_alone = about->is_system && about->system.most_cpus == 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, write_counts, NULL);
    return 0;
}
