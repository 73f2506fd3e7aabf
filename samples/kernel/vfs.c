/*
 * The file tree. Every node is made at boot, before there is a second CPU or a clock; later only a file's bytes and
 * attributes change, each file by one client at a time. Built without frame pointers.
 */
#include "vfs.h"

#define MAX_NODES   48
#define CLIENT_FILE 128 /* bytes a client's file has room for */

static struct vnode *nodes[MAX_NODES]; /* by file id; 0 is the root */
static unsigned node_count;

static int dir_read(struct vnode *vnode, u64 offset, u8 *buffer, u32 *count)
{
    (void)vnode, (void)offset, (void)buffer, (void)count;
    return EISDIR;
}

static int dir_write(struct vnode *vnode, u64 offset, const u8 *buffer, u32 count)
{
    (void)vnode, (void)offset, (void)buffer, (void)count;
    return EISDIR;
}

static int file_read(struct vnode *vnode, u64 offset, u8 *buffer, u32 *count)
{
    u64 size = vnode->v_attr.va_size;

    if (offset >= size) {
        *count = 0;
        return 0;
    }
    if (*count > size - offset)
        *count = (u32)(size - offset);
    memcpy(buffer, vnode->v_data + offset, *count);
    return 0;
}

static noinline int copy_within(u8 *to, u64 space, u64 offset, const u8 *from, u32 count)
{
    if (offset > space || count > space - offset)
        return EFBIG;
    memcpy(to + offset, from, count);
    return 0;
}

static int file_write(struct vnode *vnode, u64 offset, const u8 *buffer, u32 count)
{
    int error = copy_within(vnode->v_data, vnode->v_space, offset, buffer, count);

    if (error != 0)
        return error;
    if (offset + count > vnode->v_attr.va_size)
        vnode->v_attr.va_size = offset + count;
    return 0;
}

static const struct vops dir_ops = {dir_read, dir_write}, file_ops = {file_read, file_write};

int vfs_read(struct vnode *vnode, u64 offset, u8 *buffer, u32 *count)
{
    return vnode->v_ops->vop_read(vnode, offset, buffer, count); /* a tail call through a pointer */
}

int vfs_write(struct vnode *vnode, u64 offset, const u8 *buffer, u32 count)
{
    return vnode->v_ops->vop_write(vnode, offset, buffer, count);
}

noinline struct vattr *vattr_set(struct vattr *attr, enum vtype type, u32 mode, u32 uid, u64 size, u64 fileid,
                                 u64 mtime)
{
    attr->va_type = type;
    attr->va_mode = mode;
    attr->va_uid = uid;
    attr->va_size = size;
    attr->va_fileid = fileid;
    attr->va_mtime = mtime;
    return attr;
}

struct vnode *vfs_get(u64 fileid)
{
    if (fileid >= node_count)
        return NULL;
    return nodes[fileid];
}

/* How far `name` reaches in `path`: its length when it is the path's first component, else 0. */
always_inline size_t component_length(const char *path, const char *name)
{
    size_t length = 0;

    while (name[length] != '\0') {
        if (path[length] != name[length])
            return 0;
        length++;
    }
    if (path[length] != '/' && path[length] != '\0')
        return 0;
    return length;
}

/* Moves *path behind the component that was found. */
always_inline struct vnode *child_named(const struct vnode *parent, const char **path)
{
    struct list *link;

    list_for_each(link, &parent->v_children) {
        struct vnode *child = container_of(link, struct vnode, v_link);
        size_t length = component_length(*path, child->v_name);

        if (length == 0)
            continue;
        *path += length;
        return child;
    }
    return NULL;
}

int vfs_lookup(const char *path, struct vnode **result)
{
    struct vnode *vnode = nodes[0];

    for (;;) {
        while (*path == '/')
            path++;
        if (*path == '\0')
            break;
        if (vnode->v_attr.va_type != VDIR)
            return ENOTDIR;
        vnode = child_named(vnode, &path);
        if (vnode == NULL)
            return ENOENT;
    }
    *result = vnode;
    return 0;
}

static noinline struct vnode *vfs_create(struct vnode *parent, const char *name, enum vtype type, u32 mode, u32 uid,
                                         u64 space)
{
    struct vnode *vnode = kmalloc(sizeof(*vnode));

    if (vnode == NULL || node_count == MAX_NODES)
        panic("no room for file %s", name);
    memset(vnode, 0, sizeof(*vnode));
    list_init(&vnode->v_link);
    list_init(&vnode->v_children);
    vnode->v_ops = type == VDIR ? &dir_ops : &file_ops;
    vnode->v_space = space;
    for (size_t i = 0; name[i] != '\0' && i < sizeof(vnode->v_name) - 1; i++)
        vnode->v_name[i] = name[i];
    if (space > 0) {
        vnode->v_data = kmalloc(space);
        memset(vnode->v_data, 0, space);
    }
    vattr_set(&vnode->v_attr, type, mode, uid, 0, node_count, 0);
    nodes[node_count++] = vnode;
    if (parent != NULL)
        list_insert(&parent->v_children, &vnode->v_link);
    return vnode;
}

static void file_with(struct vnode *parent, const char *name, const char *text)
{
    size_t size = 0;
    struct vnode *file;

    while (text[size] != '\0')
        size++;
    file = vfs_create(parent, name, VREG, 0644, 0, size);
    vfs_write(file, 0, (const u8 *)text, (u32)size);
}

/* /etc with some files, and /home with a file c00, c01, ... for each client. */
void vfs_init(unsigned clients)
{
    struct vnode *root = vfs_create(NULL, "", VDIR, 0755, 0, 0);
    struct vnode *etc = vfs_create(root, "etc", VDIR, 0755, 0, 0);
    struct vnode *home = vfs_create(root, "home", VDIR, 0755, 0, 0);

    file_with(etc, "hosts", "127.0.0.1 localhost\n10.0.0.1 server\n");
    file_with(etc, "motd", "Welcome to the sample kernel.\n");
    file_with(vfs_create(etc, "rc.d", VDIR, 0755, 0, 0), "nfsd", "start() { rpc_register nfs 2 3; }\n");
    for (unsigned i = 0; i < clients; i++) {
        char name[] = {'c', (char)('0' + i / 10), (char)('0' + i % 10), '\0'};

        vfs_create(home, name, VREG, 0600, 1000 + i, CLIENT_FILE);
    }
}

struct walk {
    unsigned nodes, depth;
    u32 hash;
};

/* Recursion over the tree: its bytes, and in `walk` the rest. */
static noinline u64 vfs_walk(const struct vnode *vnode, unsigned depth, struct walk *walk)
{
    u64 bytes = vnode->v_attr.va_size;
    struct list *link;

    walk->nodes++;
    if (depth > walk->depth)
        walk->depth = depth;
    walk->hash = hash_bytes(walk->hash, vnode->v_data, bytes);
    list_for_each(link, &vnode->v_children)
        bytes += vfs_walk(container_of(link, struct vnode, v_link), depth + 1, walk);
    return bytes;
}

void vfs_report(void)
{
    struct walk walk = {0, 0, 0};
    u64 bytes = vfs_walk(nodes[0], 1, &walk);

    printk("vfs: %u nodes, %lu bytes, depth %u, hash %08x\n", walk.nodes, bytes, walk.depth, walk.hash);
    total(bytes);
    total(walk.hash);
}
