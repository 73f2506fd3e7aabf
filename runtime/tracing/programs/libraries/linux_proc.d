/* Types of proc's arguments. Members that Linux has nothing for are left out. */

#pragma D depends_on library linux_tasks.d

typedef struct signal_information {
	int si_signo;
	int si_errno;
	int si_code;
	pid_t si_pid;
	unsigned int si_uid;
	int si_status;
	uintptr_t si_addr;
} siginfo_t;

/* Where the kernel has nothing to say about a signal, it passes NULL, or 1 if the signal is its own. */
translator siginfo_t < struct kernel_siginfo *I > {
	si_signo = (uintptr_t)I > 1 ? I->si_signo : 0;
	si_errno = (uintptr_t)I > 1 ? I->si_errno : 0;
	si_code = (uintptr_t)I > 1 ? I->si_code : 0;
	si_pid = (uintptr_t)I > 1 ? I->_sifields._kill._pid : 0;
	si_uid = (uintptr_t)I > 1 ? I->_sifields._kill._uid : 0;
	si_status = (uintptr_t)I > 1 ? I->_sifields._sigchld._status : 0;
	si_addr = (uintptr_t)I > 1 ? (uintptr_t)I->_sifields._sigfault._addr : 0;
};
