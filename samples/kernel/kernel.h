/* What every file of the kernel may use: types, console, strings, the allocator, the clock's number. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define always_inline static inline __attribute__((always_inline))
#define noinline      __attribute__((noinline))
#define noreturn      __attribute__((noreturn))

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define countof(array)                      (sizeof(array) / sizeof((array)[0]))

/* printk.c: %s %c %d %u %x %p, with l for 64 bits and a zero-padded width as in %08x. */
void printk(const char *format, ...) __attribute__((format(printf, 1, 2)));
void panic(const char *format, ...) __attribute__((format(printf, 1, 2))) noreturn;

/* string.c */
void *memset(void *destination, int byte, size_t size);
void *memcpy(void *destination, const void *source, size_t size);
u32 hash_bytes(u32 seed, const void *bytes, size_t size);

/* alloc.c */
void heap_init(void);
void *kmalloc(size_t size);
void kfree(void *pointer);
void heap_report(void);

/* main.c */
void kmain(void) noreturn;
void total(u64 value);

#endif
