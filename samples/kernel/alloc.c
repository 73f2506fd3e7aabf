/*
 * kmalloc: first fit from a list of free blocks in a static heap, in the order of their addresses so that neighbours
 * join again. Free memory is filled with a pattern: a use after free shows, and when all is freed the heap is the same
 * whatever the order of the CPUs and interrupts was.
 */
#include "cpu.h"

#define HEAP_SIZE 32768
#define ALIGNMENT 16
#define POISON    0xdeadc0dedeadc0deul

struct block {
    size_t size; /* with this header */
    struct block *next; /* while it is free */
};

static u8 heap[HEAP_SIZE] __attribute__((aligned(ALIGNMENT)));
static struct block *free_blocks;
static struct spinlock heap_lock;
static u32 allocations, frees, failures;

always_inline void poison(void *start, size_t size)
{
    for (u64 *word = start; (u8 *)word < (u8 *)start + size; word++)
        *word = POISON;
}

void heap_init(void)
{
    poison(heap, HEAP_SIZE);
    free_blocks = (struct block *)heap;
    free_blocks->size = HEAP_SIZE;
    free_blocks->next = NULL;
}

/* Take `size` bytes off the front of the free block at *link. */
always_inline struct block *block_split(struct block **link, size_t size)
{
    struct block *block = *link, *rest;

    if (block->size - size < sizeof(struct block) + ALIGNMENT) {
        *link = block->next;
        return block;
    }
    rest = (struct block *)((u8 *)block + size);
    rest->size = block->size - size;
    rest->next = block->next;
    block->size = size;
    *link = rest;
    return block;
}

void *kmalloc(size_t size)
{
    size_t needed = (size + sizeof(struct block) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    unsigned long flags = spin_lock_irqsave(&heap_lock);
    struct block *block = NULL;

    for (struct block **link = &free_blocks; *link != NULL; link = &(*link)->next) {
        if ((*link)->size >= needed) {
            block = block_split(link, needed);
            break;
        }
    }
    if (block != NULL)
        allocations++;
    else
        failures++;
    spin_unlock_irqrestore(&heap_lock, flags);
    return block != NULL ? block + 1 : NULL;
}

/* Join `block` with the block after it, if that is its neighbour. */
always_inline void block_join(struct block *block)
{
    struct block *next = block->next;

    if (next == NULL || (u8 *)block + block->size != (u8 *)next)
        return;
    block->size += next->size;
    block->next = next->next;
    poison(next, sizeof(*next));
}

void kfree(void *pointer)
{
    struct block *block, *before = NULL;
    unsigned long flags;

    if (pointer == NULL)
        return;
    block = (struct block *)pointer - 1;
    poison(pointer, block->size - sizeof(*block));
    flags = spin_lock_irqsave(&heap_lock);
    for (struct block *other = free_blocks; other != NULL && other < block; other = other->next)
        before = other;
    if (before == NULL) {
        block->next = free_blocks;
        free_blocks = block;
        block_join(block);
    } else {
        block->next = before->next;
        before->next = block;
        block_join(block);
        block_join(before);
    }
    frees++;
    spin_unlock_irqrestore(&heap_lock, flags);
}

void heap_report(void)
{
    size_t bytes = 0;
    unsigned blocks = 0;

    for (struct block *block = free_blocks; block != NULL; block = block->next) {
        bytes += block->size;
        blocks++;
    }
    printk("heap: %u allocations, %u frees, %u failures, %lu bytes free in %u blocks\n",
           allocations, frees, failures, bytes, blocks);
    total(allocations);
    total(frees);
    total(failures);
    total(bytes);
}
