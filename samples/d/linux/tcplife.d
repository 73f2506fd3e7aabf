#!/usr/bin/env -S kinst-run -s
/*
 * tcplife.d - TCP connections: how long they last, and what they carried.
 *
 * Both ends of a connection are shown if both are here. Bytes are those that the other end has confirmed, and those
 * that came in order, each with one for a SYN or FIN.
 *
 * USAGE: kinst-run -s samples/d/linux/tcplife.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%-22s %-22s %10s %10s %10s\n", "HERE", "THERE", "SENT", "RECEIVED", "US");
}

sdt:sock::inet_sock_set_state
/args[2] == 1/
{
	established[(uintptr_t)args[0]] = timestamp;
}

sdt:sock::inet_sock_set_state
/args[2] == 7 && established[(uintptr_t)args[0]]/
{
	this->tcp = (struct tcp_sock *)args[0];
	this->us = (timestamp - established[(uintptr_t)args[0]]) / 1000;
	established[(uintptr_t)args[0]] = 0;
	this->here = strjoin(inet_ntoa(&args[0]->__sk_common.skc_rcv_saddr), ":");
	this->there = strjoin(inet_ntoa(&args[0]->__sk_common.skc_daddr), ":");
	printf("%-22s %-22s %10d %10d %10d\n", strjoin(this->here, lltostr(ntohs(((struct inet_sock *)args[0])->inet_sport))),
	    strjoin(this->there, lltostr(ntohs(args[0]->__sk_common.skc_dport))),
	    this->tcp->bytes_acked, this->tcp->bytes_received, this->us);
	@connections = count();
}

END
{
	printa("%@d ends of connections were closed\n", @connections);
}
