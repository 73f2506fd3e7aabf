/* What the compiler may call on its own (memset, memcpy), and a hash. */
#include "kernel.h"

void *memset(void *destination, int byte, size_t size)
{
    u8 *to = destination;

    while (size-- > 0)
        *to++ = (u8)byte;
    return destination;
}

void *memcpy(void *destination, const void *source, size_t size)
{
    u8 *to = destination;
    const u8 *from = source;

    while (size-- > 0)
        *to++ = *from++;
    return destination;
}

/* FNV-1a. */
u32 hash_bytes(u32 seed, const void *bytes, size_t size)
{
    const u8 *from = bytes;

    while (size-- > 0)
        seed = (seed ^ *from++) * 16777619;
    return seed;
}
