#!/usr/bin/env -S kinst-run -s
/*
 * tcpconnect.d - TCP connections that programs make or accept, or cannot make.
 *
 * A connection is made when the other end has answered; US is the time until then.
 *
 * USAGE: kinst-run -s samples/d/linux/tcpconnect.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%-8s %-16s %6s %-16s %6s %10s\n", "", "PROGRAM", "PID", "ADDRESS", "PORT", "US");
}

sdt:sock::inet_sock_set_state
/args[2] == 2/
{
	connect_at[(uintptr_t)args[0]] = timestamp;
	connect_by[(uintptr_t)args[0]] = execname;
	connect_pid[(uintptr_t)args[0]] = pid;
}

sdt:sock::inet_sock_set_state
/args[1] == 2 && connect_at[(uintptr_t)args[0]]/
{
	this->sock = (uintptr_t)args[0];
	this->us = (timestamp - connect_at[this->sock]) / 1000;
	connect_at[this->sock] = 0;
	this->what = args[2] == 1 ? "connect" : "fail";
	printf("%-8s %-16s %6d %-16s ", this->what, connect_by[this->sock], connect_pid[this->sock],
	    inet_ntoa(&args[0]->__sk_common.skc_daddr));
	printf("%6d %10d\n", ntohs(args[0]->__sk_common.skc_dport), this->us);
	@tcp[this->what] = count();
}

fbt::inet_csk_accept:return
/arg1/
{
	printf("%-8s %-16s %6d %-16s ", "accept", execname, pid, inet_ntoa(&args[1]->__sk_common.skc_daddr));
	printf("%6d %10s\n", args[1]->__sk_common.skc_num, "-");
	@tcp["accept"] = count();
}

END
{
	printa("%s: %@d\n", @tcp);
}
