/* Sizes and numbers that C and assembly share. */
#ifndef CONFIG_H
#define CONFIG_H

#define NCPU        4
#define STACK_SHIFT 13 /* 8 KiB a CPU */
#define STACK_SIZE  (1 << STACK_SHIFT)

#define TICKS_PER_SECOND 1000

/* Errors are the BSD numbers. */
#define ENOENT    2
#define ENOMEM    12
#define EFAULT    14
#define EEXIST    17
#define ENOTDIR   20
#define EISDIR    21
#define EINVAL    22
#define EFBIG     27
#define ESTALE    70
#define EPROGMISMATCH 75
#define EPROCUNAVAIL  76

#endif
