/* A tree of files in memory. */
#ifndef VFS_H
#define VFS_H

#include "list.h"

enum vtype { VREG, VDIR };

struct vattr {
    enum vtype va_type;
    u32 va_mode;
    u32 va_uid;
    u64 va_size;
    u64 va_fileid;
    u64 va_mtime; /* the xid of the last write, for want of a clock that shows the same in each run */
};

struct vnode {
    struct list v_link; /* among the parent's children */
    struct list v_children;
    const struct vops *v_ops;
    struct vattr v_attr;
    u64 v_space; /* size of v_data */
    u8 *v_data;
    char v_name[12];
};

struct vops {
    int (*vop_read)(struct vnode *vnode, u64 offset, u8 *buffer, u32 *count);
    int (*vop_write)(struct vnode *vnode, u64 offset, const u8 *buffer, u32 count);
};

void vfs_init(unsigned clients);
void vfs_report(void);
struct vnode *vfs_get(u64 fileid);
int vfs_lookup(const char *path, struct vnode **result);
int vfs_read(struct vnode *vnode, u64 offset, u8 *buffer, u32 *count);
int vfs_write(struct vnode *vnode, u64 offset, const u8 *buffer, u32 count);
struct vattr *vattr_set(struct vattr *attr, enum vtype type, u32 mode, u32 uid, u64 size, u64 fileid, u64 mtime);

#endif
