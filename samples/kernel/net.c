/*
 * Packets come in bursts, made by each interface's poll callout from a seed, and go up: if_input, the interface's own
 * handler, the protocol. All of it runs in callouts, on CPU 0.
 */
#include "net.h"

#include "bpf.h"

#define ETHER_HEADER   14
#define ETHERTYPE_IP   0x0800
#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_VLAN 0x8100
#define VLAN_TAG       4
#define WATCHDOG_TICKS 8
#define MIN_PACKET     60

enum protocol { PROTO_ARP, PROTO_TCP, PROTO_UDP, PROTO_LOOP, PROTOCOLS };

static u32 protocol_packets[PROTOCOLS], nfs_packets, watchdogs, sampled_packets;

/* ip and (tcp or udp) and port 2049: takes the whole packet, else nothing. */
static const struct bpf_insn nfs_filter[] = {
    {BPF_LDLEN, 0, 0, 0},
    {BPF_JGT, 0, 8, MIN_PACKET - 1},
    {BPF_LDH, 0, 0, 12},
    {BPF_JEQ, 0, 6, ETHERTYPE_IP},
    {BPF_LDB, 0, 0, 23},
    {BPF_AND, 0, 0, 0xff},
    {BPF_JEQ, 1, 0, 6},
    {BPF_JEQ, 0, 2, 17},
    {BPF_LDH, 0, 0, 36},
    {BPF_JEQ, 1, 0, 2049},
    {BPF_RET, 0, 0, 0},
    {BPF_RET, 0, 0, 0xffffffff},
};

always_inline u32 next_random(u32 *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

always_inline void put16(u8 *to, u32 value)
{
    to[0] = (u8)(value >> 8);
    to[1] = (u8)value;
}

always_inline u32 get16(const u8 *from)
{
    return (u32)(from[0] << 8 | from[1]);
}

static struct mbuf *m_get(u32 size)
{
    struct mbuf *m = kmalloc(sizeof(*m) + size);

    if (m == NULL)
        return NULL;
    m->m_len = size;
    memset(m->m_data, 0, MIN_PACKET);
    return m;
}

static void m_free(struct mbuf *m)
{
    kfree(m);
}

static noinline int proto_input(enum protocol protocol, struct mbuf *m)
{
    protocol_packets[protocol]++;
    if (bpf_filter(nfs_filter, m->m_data, m->m_len) > 0)
        nfs_packets++;
    m_free(m);
    return 0;
}

/* A VLAN tag hides the type that counts: look again behind it. */
static noinline int ether_demux(struct ifnet *ifp, struct mbuf *m, u32 type_offset)
{
    switch (get16(m->m_data + type_offset)) {
    case ETHERTYPE_VLAN:
        return ether_demux(ifp, m, type_offset + VLAN_TAG);
    case ETHERTYPE_ARP:
        return proto_input(PROTO_ARP, m);
    case ETHERTYPE_IP:
        return proto_input(m->m_data[type_offset + 11] == 6 ? PROTO_TCP : PROTO_UDP, m);
    default:
        ifp->if_iqdrops++;
        m_free(m);
        return EINVAL;
    }
}

static int ether_input(struct ifnet *ifp, struct mbuf *m)
{
    if (m->m_len < MIN_PACKET) {
        ifp->if_iqdrops++;
        m_free(m);
        return EINVAL;
    }
    return ether_demux(ifp, m, ETHER_HEADER - 2);
}

static int loop_input(struct ifnet *ifp, struct mbuf *m)
{
    (void)ifp;
    return proto_input(PROTO_LOOP, m);
}

noinline int if_input(struct ifnet *ifp, struct mbuf *m)
{
    ifp->if_ipackets++;
    ifp->if_ibytes += m->m_len;
    return ifp->if_handler(ifp, m);
}

/* A header of some type, from the seed; the rest of the packet does not matter to anyone. */
static noinline void make_packet(struct mbuf *m, u32 random)
{
    static const u16 types[] = {ETHERTYPE_IP, ETHERTYPE_ARP, ETHERTYPE_IP, ETHERTYPE_VLAN, ETHERTYPE_IP, 0x86dd};
    u32 type = types[random % countof(types)];
    u8 *header = m->m_data + ETHER_HEADER;

    put16(header - 2, type);
    if (type == ETHERTYPE_VLAN) {
        put16(header + 2, ETHERTYPE_IP);
        header += VLAN_TAG;
    }
    header[9] = random & 64 ? 6 : 17;
    put16(header + 22, random & 128 ? 2049 : 80);
}

static void if_watchdog(void *arg)
{
    struct ifnet *ifp = arg;

    watchdogs++;
    printk("%s: watchdog\n", ifp->if_name);
}

static void if_poll(void *arg)
{
    struct ifnet *ifp = arg;

    for (unsigned i = 0; i < ifp->if_burst; i++) {
        u32 random = next_random(&ifp->if_seed);
        struct mbuf *m = m_get(MIN_PACKET + random % 400);

        if (m == NULL) {
            ifp->if_iqdrops++;
            continue;
        }
        make_packet(m, random >> 4);
        if_input(ifp, m);
    }
    callout_reset(&ifp->if_watchdog, WATCHDOG_TICKS, if_watchdog, ifp);
    callout_reset(&ifp->if_poller, ifp->if_period, if_poll, ifp);
}

static struct ifnet interfaces[] = {
    {.if_name = "em0", .if_handler = ether_input, .if_period = 2, .if_burst = 2, .if_seed = 1},
    {.if_name = "em1", .if_handler = ether_input, .if_period = 3, .if_burst = 3, .if_seed = 2},
    {.if_name = "lo0", .if_handler = loop_input, .if_period = 5, .if_burst = 1, .if_seed = 3},
};

/* Adds up how many packets there were at each sample: a callout that reads where the others write. */
static void if_sample(void *arg)
{
    for (unsigned i = 0; i < countof(interfaces); i++)
        sampled_packets += interfaces[i].if_ipackets;
    callout_reset(arg, 4, if_sample, arg);
}

void net_start(void)
{
    static struct callout sampler;

    for (unsigned i = 0; i < countof(interfaces); i++) {
        struct ifnet *ifp = &interfaces[i];

        callout_reset(&ifp->if_poller, ifp->if_period, if_poll, ifp);
    }
    callout_reset(&sampler, 1, if_sample, &sampler);
}

void net_stop(void)
{
    for (unsigned i = 0; i < countof(interfaces); i++) {
        callout_stop(&interfaces[i].if_poller);
        callout_stop(&interfaces[i].if_watchdog);
    }
}

void net_report(void)
{
    for (unsigned i = 0; i < countof(interfaces); i++) {
        const struct ifnet *ifp = &interfaces[i];

        printk("%s: %u packets, %lu bytes, %u dropped\n", ifp->if_name, ifp->if_ipackets, ifp->if_ibytes,
               ifp->if_iqdrops);
        total(ifp->if_ipackets);
        total(ifp->if_ibytes);
    }
    printk("net: arp %u, tcp %u, udp %u, loop %u, nfs %u, sampled %u, watchdogs %u\n", protocol_packets[PROTO_ARP],
           protocol_packets[PROTO_TCP], protocol_packets[PROTO_UDP], protocol_packets[PROTO_LOOP], nfs_packets,
           sampled_packets, watchdogs);
    total(nfs_packets);
    total(sampled_packets);
    total(watchdogs);
}
