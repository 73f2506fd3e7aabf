/*
 * Types of tcp's arguments. arg6 is the state plus 16, the family, the local and the remote port; arg7 is the socket, or
 * 0 where there is no whole one; arg8 and arg9 point to the local and the remote address. Without a socket what it would
 * tell is 0, and the state of a segment that arrives is -7, which DTrace does not have.
 */

#pragma D depends_on library linux_ip.d

inline int TH_FIN = 0x01;
inline int TH_SYN = 0x02;
inline int TH_RST = 0x04;
inline int TH_PUSH = 0x08;
inline int TH_ACK = 0x10;
inline int TH_URG = 0x20;
inline int TH_ECE = 0x40;
inline int TH_CWR = 0x80;

inline int TCP_STATE_CLOSED = -6;
inline int TCP_STATE_IDLE = -5;
inline int TCP_STATE_BOUND = -4;
inline int TCP_STATE_LISTEN = -3;
inline int TCP_STATE_SYN_SENT = -2;
inline int TCP_STATE_SYN_RECEIVED = -1;
inline int TCP_STATE_ESTABLISHED = 0;
inline int TCP_STATE_CLOSE_WAIT = 1;
inline int TCP_STATE_FIN_WAIT_1 = 2;
inline int TCP_STATE_CLOSING = 3;
inline int TCP_STATE_LAST_ACK = 4;
inline int TCP_STATE_FIN_WAIT_2 = 5;
inline int TCP_STATE_TIME_WAIT = 6;

inline string tcp_state_string[int state] =
    state == -6 ? "state-closed" :
    state == -3 ? "state-listen" :
    state == -2 ? "state-syn-sent" :
    state == -1 ? "state-syn-received" :
    state == 0 ? "state-established" :
    state == 1 ? "state-close-wait" :
    state == 2 ? "state-fin-wait-1" :
    state == 3 ? "state-closing" :
    state == 4 ? "state-last-ack" :
    state == 5 ? "state-fin-wait-2" :
    state == 6 ? "state-time-wait" : "<unknown>";

typedef struct tcpsinfo {
	uintptr_t tcps_addr;
	uint16_t tcps_lport;
	uint16_t tcps_rport;
	string tcps_laddr;
	string tcps_raddr;
	int32_t tcps_state;
	uint32_t tcps_suna;
	uint32_t tcps_snxt;
	uint32_t tcps_rnxt;
	uint32_t tcps_swnd;
	uint32_t tcps_rwnd;
	uint32_t tcps_cwnd;
	uint32_t tcps_cwnd_ssthresh;
	uint32_t tcps_mss;
	int tcps_retransmit;
} tcpsinfo_t;

translator tcpsinfo_t < struct sock *S > {
	tcps_addr = (uintptr_t)S;
	tcps_lport = arg6 >> 16 & 0xffff;
	tcps_rport = arg6 & 0xffff;
	tcps_laddr = inet_ntop(arg6 >> 32 & 0xffff, (void *)arg8);
	tcps_raddr = inet_ntop(arg6 >> 32 & 0xffff, (void *)arg9);
	tcps_state = (int)(arg6 >> 48) - 16;
	tcps_suna = arg7 ? ((struct tcp_sock *)arg7)->snd_una : 0;
	tcps_snxt = arg7 ? ((struct tcp_sock *)arg7)->snd_nxt : 0;
	tcps_rnxt = arg7 ? ((struct tcp_sock *)arg7)->rcv_nxt : 0;
	tcps_swnd = arg7 ? ((struct tcp_sock *)arg7)->snd_wnd : 0;
	tcps_rwnd = arg7 ? ((struct tcp_sock *)arg7)->rcv_wnd : 0;
	tcps_cwnd = arg7 ? ((struct tcp_sock *)arg7)->snd_cwnd * ((struct tcp_sock *)arg7)->mss_cache : 0;
	tcps_cwnd_ssthresh = arg7 ? ((struct tcp_sock *)arg7)->snd_ssthresh : 0;
	tcps_mss = arg7 ? ((struct tcp_sock *)arg7)->mss_cache : 0;
	tcps_retransmit = arg7 ? ((struct inet_connection_sock *)arg7)->icsk_retransmits : 0;
};

typedef struct tcplsinfo {
	int32_t tcps_state;
} tcplsinfo_t;

/* The number is the argument itself, in place of a pointer. */
translator tcplsinfo_t < int *L > {
	tcps_state = (int)(uintptr_t)L - 16;
};

typedef struct tcpinfo {
	uint16_t tcp_sport;
	uint16_t tcp_dport;
	uint32_t tcp_seq;
	uint32_t tcp_ack;
	uint8_t tcp_offset;
	uint8_t tcp_flags;
	uint16_t tcp_window;
	uint16_t tcp_checksum;
	uint16_t tcp_urgent;
	uintptr_t tcp_hdr;
} tcpinfo_t;

translator tcpinfo_t < struct tcphdr *T > {
	tcp_sport = ntohs(T->source);
	tcp_dport = ntohs(T->dest);
	tcp_seq = ntohl(T->seq);
	tcp_ack = ntohl(T->ack_seq);
	tcp_offset = *(uint8_t *)((uintptr_t)T + 12) >> 4 << 2;
	tcp_flags = *(uint8_t *)((uintptr_t)T + 13);
	tcp_window = ntohs(T->window);
	tcp_checksum = ntohs(T->check);
	tcp_urgent = ntohs(T->urg_ptr);
	tcp_hdr = (uintptr_t)T;
};
