/* Types of ip's arguments, which tcp and udp have too. What Linux does not tell is 0 or "<none>". */

typedef struct pktinfo {
	uintptr_t pkt_addr;
} pktinfo_t;

translator pktinfo_t < struct sk_buff *P > {
	pkt_addr = (uintptr_t)P;
};

typedef struct csinfo {
	uintptr_t cs_addr;
	uint64_t cs_cid;
	pid_t cs_pid;
} csinfo_t;

translator csinfo_t < struct sock *S > {
	cs_addr = (uintptr_t)S;
	cs_cid = (uint64_t)S;
	cs_pid = 0;
};

typedef struct ipinfo {
	uint8_t ip_ver;
	uint32_t ip_plength;
	string ip_saddr;
	string ip_daddr;
} ipinfo_t;

translator ipinfo_t < struct iphdr *I > {
	ip_ver = *(uint8_t *)I >> 4;
	ip_plength = *(uint8_t *)I >> 4 == 4 ? ntohs(I->tot_len) - (*(uint8_t *)I & 15) * 4 :
	    ntohs(((struct ipv6hdr *)I)->payload_len);
	ip_saddr = *(uint8_t *)I >> 4 == 4 ? inet_ntop(2, (void *)((uintptr_t)I + 12)) :
	    inet_ntop(10, (void *)((uintptr_t)I + 8));
	ip_daddr = *(uint8_t *)I >> 4 == 4 ? inet_ntop(2, (void *)((uintptr_t)I + 16)) :
	    inet_ntop(10, (void *)((uintptr_t)I + 24));
};

typedef struct ifinfo {
	string if_name;
	int8_t if_local;
	uintptr_t if_addr;
} ifinfo_t;

/* IFF_LOOPBACK is 8 (include/uapi/linux/if.h). */
translator ifinfo_t < struct net_device *D > {
	if_name = D == NULL ? "<none>" : stringof(D->name);
	if_local = D == NULL ? 0 : (D->flags & 8) != 0;
	if_addr = (uintptr_t)D;
};

typedef struct ipv4info {
	uint8_t ipv4_ver;
	uint8_t ipv4_ihl;
	uint8_t ipv4_tos;
	uint16_t ipv4_length;
	uint16_t ipv4_ident;
	uint8_t ipv4_flags;
	uint16_t ipv4_offset;
	uint8_t ipv4_ttl;
	uint8_t ipv4_protocol;
	uint16_t ipv4_checksum;
	string ipv4_saddr;
	string ipv4_daddr;
	uintptr_t ipv4_hdr;
} ipv4info_t;

translator ipv4info_t < struct iphdr *I > {
	ipv4_ver = I == NULL ? 0 : *(uint8_t *)I >> 4;
	ipv4_ihl = I == NULL ? 0 : (*(uint8_t *)I & 15) * 4;
	ipv4_tos = I == NULL ? 0 : I->tos;
	ipv4_length = I == NULL ? 0 : ntohs(I->tot_len);
	ipv4_ident = I == NULL ? 0 : ntohs(I->id);
	ipv4_flags = I == NULL ? 0 : ntohs(I->frag_off) >> 13;
	ipv4_offset = I == NULL ? 0 : (ntohs(I->frag_off) & 0x1fff) * 8;
	ipv4_ttl = I == NULL ? 0 : I->ttl;
	ipv4_protocol = I == NULL ? 0 : I->protocol;
	ipv4_checksum = I == NULL ? 0 : ntohs(I->check);
	ipv4_saddr = I == NULL ? "<none>" : inet_ntop(2, (void *)((uintptr_t)I + 12));
	ipv4_daddr = I == NULL ? "<none>" : inet_ntop(2, (void *)((uintptr_t)I + 16));
	ipv4_hdr = (uintptr_t)I;
};

typedef struct ipv6info {
	uint8_t ipv6_ver;
	uint8_t ipv6_tclass;
	uint32_t ipv6_flow;
	uint16_t ipv6_plen;
	uint8_t ipv6_nexthdr;
	uint8_t ipv6_hlim;
	string ipv6_saddr;
	string ipv6_daddr;
	uintptr_t ipv6_hdr;
} ipv6info_t;

translator ipv6info_t < struct ipv6hdr *I > {
	ipv6_ver = I == NULL ? 0 : *(uint8_t *)I >> 4;
	ipv6_tclass = I == NULL ? 0 : ntohl(*(uint32_t *)I) >> 20 & 0xff;
	ipv6_flow = I == NULL ? 0 : ntohl(*(uint32_t *)I) & 0xfffff;
	ipv6_plen = I == NULL ? 0 : ntohs(I->payload_len);
	ipv6_nexthdr = I == NULL ? 0 : I->nexthdr;
	ipv6_hlim = I == NULL ? 0 : I->hop_limit;
	ipv6_saddr = I == NULL ? "<none>" : inet_ntop(10, (void *)((uintptr_t)I + 8));
	ipv6_daddr = I == NULL ? "<none>" : inet_ntop(10, (void *)((uintptr_t)I + 24));
	ipv6_hdr = (uintptr_t)I;
};
