/* A ring of links with a head, as in <sys/queue.h>. Small and inlined everywhere: callers hold the lock. */
#ifndef LIST_H
#define LIST_H

#include "kernel.h"

struct list {
    struct list *next, *prev;
};

always_inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

always_inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

always_inline struct list *list_first(const struct list *head)
{
    if (list_empty(head))
        return NULL;
    return head->next;
}

/* Before `position`; with the head as position that is the end of the list. */
always_inline void list_insert(struct list *position, struct list *link)
{
    link->next = position;
    link->prev = position->prev;
    position->prev->next = link;
    position->prev = link;
}

always_inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

#define list_for_each(link, head) for (link = (head)->next; link != (head); link = link->next)

#endif
