/*
 * The dispatcher and its handlers: version 2 and 3 of five procedures. Built with branch protection: endbr64 on amd64,
 * BTI and PAC on arm64, where a handler is called through the table.
 */
#include "rpc.h"

#include "cpu.h"

#define V2_MAX_OFFSET 0xffffffffu /* version 2 has 32-bit offsets */
#define V2_MAX_COUNT  8192u

struct rpc_operation {
    const char *name;
    int (*handler)(struct rpc_request *request);
    u32 calls, errors;
};

static int rpc_null(struct rpc_request *request)
{
    request->reply.count = 0;
    return 0;
}

always_inline int fill_attr(struct rpc_request *request, const struct vnode *vnode)
{
    const struct vattr *from = &vnode->v_attr;

    vattr_set(&request->reply.attr, from->va_type, from->va_mode, from->va_uid, from->va_size, from->va_fileid,
              from->va_mtime);
    return 0;
}

static int rpc_getattr(struct rpc_request *request)
{
    const struct vnode *vnode = vfs_get(request->handle);

    if (vnode == NULL)
        return ESTALE;
    return fill_attr(request, vnode);
}

static int rpc_lookup(struct rpc_request *request)
{
    struct vnode *vnode;
    int error = vfs_lookup(request->name, &vnode);

    if (error != 0)
        return error;
    request->reply.handle = vnode->v_attr.va_fileid;
    return fill_attr(request, vnode);
}

static noinline int rpc_read(struct rpc_request *request)
{
    struct vnode *vnode = vfs_get(request->handle);

    if (vnode == NULL)
        return ESTALE;
    request->reply.data = kmalloc(request->count);
    if (request->reply.data == NULL)
        return ENOMEM;
    request->reply.count = request->count;
    return vfs_read(vnode, request->offset, request->reply.data, &request->reply.count);
}

static noinline int rpc_write(struct rpc_request *request)
{
    struct vnode *vnode = vfs_get(request->handle);
    int error;

    if (vnode == NULL)
        return ESTALE;
    error = vfs_write(vnode, request->offset, request->data, request->count);
    if (error != 0)
        return error;
    vnode->v_attr.va_mtime = request->xid;
    request->reply.count = request->count;
    return fill_attr(request, vnode);
}

/* What version 2 could say of an offset and a count, before version 3's handler does the work in a tail call. */
always_inline int v2_limits(const struct rpc_request *request)
{
    if (request->offset > V2_MAX_OFFSET)
        return EFBIG;
    if (request->count > V2_MAX_COUNT)
        return EINVAL;
    return 0;
}

static int rpc_read_v2(struct rpc_request *request)
{
    int error = v2_limits(request);

    if (error != 0)
        return error;
    return rpc_read(request);
}

static int rpc_write_v2(struct rpc_request *request)
{
    int error = v2_limits(request);

    if (error != 0)
        return error;
    return rpc_write(request);
}

static struct rpc_operation operations[][RPC_PROCEDURES] = {
    {{"null", rpc_null, 0, 0},
     {"getattr", rpc_getattr, 0, 0},
     {"lookup", rpc_lookup, 0, 0},
     {"read", rpc_read_v2, 0, 0},
     {"write", rpc_write_v2, 0, 0}},
    {{"null", rpc_null, 0, 0},
     {"getattr", rpc_getattr, 0, 0},
     {"lookup", rpc_lookup, 0, 0},
     {"read", rpc_read, 0, 0},
     {"write", rpc_write, 0, 0}},
};

/* The one place that every procedure of every version passes, with its name at hand. */
static noinline int rpc_call(struct rpc_operation *operation, struct rpc_request *request)
{
    int error = operation->handler(request);

    atomic_add(&operation->calls, 1);
    if (error != 0)
        atomic_add(&operation->errors, 1);
    return error;
}

int rpc_dispatch(struct rpc_request *request)
{
    memset(&request->reply, 0, sizeof(request->reply));
    if (request->version < RPC_V2 || request->version > RPC_V3)
        return EPROGMISMATCH;
    if (request->procedure >= RPC_PROCEDURES)
        return EPROCUNAVAIL;
    return rpc_call(&operations[request->version - RPC_V2][request->procedure], request);
}

void rpc_release(struct rpc_request *request)
{
    kfree(request->reply.data);
    request->reply.data = NULL;
}

void rpc_report(void)
{
    for (unsigned version = 0; version < countof(operations); version++) {
        printk("rpc: v%u", version + RPC_V2);
        for (unsigned i = 0; i < RPC_PROCEDURES; i++) {
            const struct rpc_operation *operation = &operations[version][i];

            printk(" %s %u/%u", operation->name, operation->calls, operation->errors);
            total(operation->calls);
            total(operation->errors);
        }
        printk(" (calls/errors)\n");
    }
}
