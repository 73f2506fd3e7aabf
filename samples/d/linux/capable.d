#!/usr/bin/env -S kinst-run -s
/*
 * capable.d - what programs are asked to be allowed: checks of capabilities, and their answers.
 *
 * FIELDS:
 *	CAP		the capability: capability(7)
 *	ANSWER		yes, or no
 *
 * USAGE: kinst-run -s samples/d/linux/capable.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	cap[0] = "CHOWN";
	cap[1] = "DAC_OVERRIDE";
	cap[2] = "DAC_READ_SEARCH";
	cap[3] = "FOWNER";
	cap[4] = "FSETID";
	cap[5] = "KILL";
	cap[6] = "SETGID";
	cap[7] = "SETUID";
	cap[8] = "SETPCAP";
	cap[9] = "LINUX_IMMUTABLE";
	cap[10] = "NET_BIND_SERVICE";
	cap[11] = "NET_BROADCAST";
	cap[12] = "NET_ADMIN";
	cap[13] = "NET_RAW";
	cap[14] = "IPC_LOCK";
	cap[15] = "IPC_OWNER";
	cap[16] = "SYS_MODULE";
	cap[17] = "SYS_RAWIO";
	cap[18] = "SYS_CHROOT";
	cap[19] = "SYS_PTRACE";
	cap[20] = "SYS_PACCT";
	cap[21] = "SYS_ADMIN";
	cap[22] = "SYS_BOOT";
	cap[23] = "SYS_NICE";
	cap[24] = "SYS_RESOURCE";
	cap[25] = "SYS_TIME";
	cap[26] = "SYS_TTY_CONFIG";
	cap[27] = "MKNOD";
	cap[28] = "LEASE";
	cap[29] = "AUDIT_WRITE";
	cap[30] = "AUDIT_CONTROL";
	cap[31] = "SETFCAP";
	cap[32] = "MAC_OVERRIDE";
	cap[33] = "MAC_ADMIN";
	cap[34] = "SYSLOG";
	cap[35] = "WAKE_ALARM";
	cap[36] = "BLOCK_SUSPEND";
	cap[37] = "AUDIT_READ";
	cap[38] = "PERFMON";
	cap[39] = "BPF";
	cap[40] = "CHECKPOINT_RESTORE";
}

fbt::cap_capable:entry
{
	self->cap_asked = args[2] + 1;
}

fbt::cap_capable:return
/self->cap_asked/
{
	@caps[execname, cap[self->cap_asked - 1], args[1] ? "no" : "yes"] = count();
	@all_caps = count();
	self->cap_asked = 0;
}

END
{
	printf("%-16s %-20s %-6s %8s\n", "PROGRAM", "CAP", "ANSWER", "COUNT");
	printa("%-16s %-20s %-6s %@8d\n", @caps);
	printa("%@d checks in all\n", @all_caps);
}
