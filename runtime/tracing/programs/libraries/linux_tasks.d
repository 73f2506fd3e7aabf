/* Tasks of Linux as DTrace shows threads and processes. Members that Linux has nothing for are left out. */

typedef struct psinfo {
	pid_t pr_pid;
	pid_t pr_ppid;
	unsigned int pr_uid;
	unsigned int pr_euid;
	unsigned int pr_gid;
	unsigned int pr_egid;
	uintptr_t pr_addr;
	char pr_fname[16];
} psinfo_t;

translator psinfo_t < struct task_struct *T > {
	pr_pid = T->tgid;
	pr_ppid = T->real_parent->tgid;
	pr_uid = T->cred->uid.val;
	pr_euid = T->cred->euid.val;
	pr_gid = T->cred->gid.val;
	pr_egid = T->cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_fname = T->comm;
};

typedef struct lwpsinfo {
	id_t pr_lwpid;
	int pr_pri;
	uintptr_t pr_addr;
	char pr_name[16];
} lwpsinfo_t;

translator lwpsinfo_t < struct task_struct *T > {
	pr_lwpid = T->pid;
	pr_pri = T->prio;
	pr_addr = (uintptr_t)T;
	pr_name = T->comm;
};
