/* Network interfaces that make up their own packets. */
#ifndef NET_H
#define NET_H

#include "callout.h"

struct mbuf {
    u32 m_len;
    u8 m_data[];
};

struct ifnet {
    const char *if_name;
    int (*if_handler)(struct ifnet *ifp, struct mbuf *m);
    unsigned if_period; /* ticks between two polls */
    unsigned if_burst;  /* packets a poll */
    u32 if_seed;        /* of its packets */
    u32 if_ipackets, if_iqdrops;
    u64 if_ibytes;
    struct callout if_poller, if_watchdog;
};

int if_input(struct ifnet *ifp, struct mbuf *m);
void net_start(void);
void net_stop(void);
void net_report(void);

#endif
