/*
 * The clients. Each works on a file of its own and adds its result to a sum, so neither the order of the clients nor
 * the CPU they run on shows in the end.
 */
#include "client.h"

#include "cpu.h"
#include "rpc.h"

struct step {
    u8 version, procedure;
    u8 error;         /* that we expect */
    const char *name; /* lookup; OWN_FILE stands for the client's */
    u64 offset;
    u32 count;
};

#define OWN_FILE NULL

static const struct step script[] = {
    {2, RPC_NULL, 0, "", 0, 0},
    {3, RPC_NULL, 0, "", 0, 0},
    {2, RPC_LOOKUP, 0, "/etc/hosts", 0, 0},
    {2, RPC_READ, 0, "", 0, 16},
    {3, RPC_READ, 0, "", 10, 200},
    {2, RPC_LOOKUP, ENOENT, "/etc/shadow", 0, 0},
    {3, RPC_LOOKUP, ENOENT, "/home/nobody/mail", 0, 0},
    {3, RPC_LOOKUP, ENOTDIR, "/etc/motd/today", 0, 0},
    {3, RPC_LOOKUP, 0, OWN_FILE, 0, 0},
    {2, RPC_GETATTR, 0, "", 0, 0},
    {3, RPC_WRITE, 0, "", 0, 48},
    {2, RPC_WRITE, 0, "", 40, 24},
    {3, RPC_GETATTR, 0, "", 0, 0},
    {3, RPC_READ, 0, "", 0, 128},
    {2, RPC_READ, EFBIG, "", 0x100000000, 16},
    {2, RPC_WRITE, EINVAL, "", 0, 10000},
    {3, RPC_READ, ENOMEM, "", 0, 1000000},
    {3, RPC_WRITE, EFBIG, "", 120, 48},
    {3, RPC_READ, 0, "", 4096, 16},
    {4, RPC_NULL, EPROGMISMATCH, "", 0, 0},
    {3, 9, EPROCUNAVAIL, "", 0, 0},
    {3, RPC_LOOKUP, 0, "/etc/rc.d", 0, 0},
    {3, RPC_READ, EISDIR, "", 0, 16},
};

static u32 calls, surprises, results;

static u32 reply_hash(u32 hash, const struct rpc_reply *reply)
{
    hash = hash_bytes(hash, &reply->attr, sizeof(reply->attr));
    hash = hash_bytes(hash, &reply->count, sizeof(reply->count));
    if (reply->data == NULL)
        return hash;
    return hash_bytes(hash, reply->data, reply->count);
}

static void fill_pattern(u8 *buffer, size_t size, unsigned client)
{
    for (size_t i = 0; i < size; i++)
        buffer[i] = (u8)('a' + (client + i) % 26);
}

void client_run(void *argument)
{
    unsigned client = (unsigned)(uintptr_t)argument;
    char own_file[] = {'/', 'h', 'o', 'm', 'e', '/', 'c', (char)('0' + client / 10), (char)('0' + client % 10), '\0'};
    u8 pattern[48];
    u64 handle = 0;
    u32 hash = client;

    fill_pattern(pattern, sizeof(pattern), client);
    for (unsigned i = 0; i < countof(script); i++) {
        const struct step *step = &script[i];
        struct rpc_request request = {
            .xid = client * 100 + i,
            .version = step->version,
            .procedure = step->procedure,
            .handle = handle,
            .name = step->name == OWN_FILE ? own_file : step->name,
            .offset = step->offset,
            .count = step->count,
            .data = pattern,
        };
        int error = rpc_dispatch(&request);

        if (error != step->error)
            atomic_add(&surprises, 1);
        if (error == 0)
            hash = reply_hash(hash, &request.reply);
        if (error == 0 && step->procedure == RPC_LOOKUP)
            handle = request.reply.handle;
        rpc_release(&request);
        atomic_add(&calls, 1);
    }
    atomic_add(&results, hash);
}

void client_report(void)
{
    printk("clients: %u, %u calls, %u surprises, results %08x\n", CLIENTS, calls, surprises, results);
    total(calls);
    total(surprises);
    total(results);
}
