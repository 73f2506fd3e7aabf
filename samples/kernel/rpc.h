/* Remote procedure calls as a file server gets them: a version, a procedure, a file handle and what the procedure asks. */
#ifndef RPC_H
#define RPC_H

#include "vfs.h"

enum rpc_version { RPC_V2 = 2, RPC_V3 = 3 };
enum rpc_procedure { RPC_NULL, RPC_GETATTR, RPC_LOOKUP, RPC_READ, RPC_WRITE, RPC_PROCEDURES };

struct rpc_reply {
    u32 count;
    u64 handle;
    struct vattr attr;
    u8 *data; /* of a read; rpc_release frees it */
};

struct rpc_request {
    u32 xid;
    u32 version;
    u32 procedure;
    u64 handle;
    const char *name; /* lookup */
    u64 offset;       /* read, write */
    u32 count;
    const u8 *data; /* write */
    struct rpc_reply reply;
};

int rpc_dispatch(struct rpc_request *request);
void rpc_release(struct rpc_request *request);
void rpc_report(void);

#endif
