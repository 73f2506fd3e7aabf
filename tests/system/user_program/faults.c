/* Instructions that fault: which signal, which code, and which address it tells. */
#include "program.h"

static char *page; /* three pages: one that can be written, one that can be read, one that is not there */
static long size;

static void tell(const char *what, struct caught caught, uintptr_t base)
{
	char address[32];

	snprintf(address, sizeof address, base && caught.address ? "base%+ld" : "%ld", (long)(caught.address - base));
	if (caught.address == 0)
		strcpy(address, "0");
	say("%s: signal %d code %d address %s at %+ld error %#lx", what, caught.signal, caught.code, address,
	    caught.pc == caught.address ? 0 : 1L, caught.error);
}

static void do_load(void *address)
{
	*(volatile char *)address;
}

static void do_store(void *address)
{
	*(volatile char *)address = 1;
}

static void do_long_load(void *address)
{
	*(volatile uint64_t *)address;
}

static void do_call(void *address)
{
	((void (*)(void))address)();
}

static void accesses(void)
{
	int file = syscall(SYS_memfd_create, "file", 0);

	size = sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(page + size, size, PROT_READ);
	munmap(page + 2 * size, 2 * size);
	tell("load from nothing", catching(do_load, NULL), 0);
	tell("store to nothing", catching(do_store, (void *)8), 0);
	tell("call of nothing", catching(do_call, (void *)16), 0);
	tell("store to what is read only", catching(do_store, page + size + 5), (uintptr_t)page);
	tell("load behind the end", catching(do_load, page + 2 * size + 7), (uintptr_t)page);
	tell("load across the end", catching(do_long_load, page + 2 * size - 3), (uintptr_t)page);
	tell("call of data", catching(do_call, page), (uintptr_t)page);
	tell("call behind the end", catching(do_call, page + 2 * size), (uintptr_t)page);
	char *unnamed = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tell("load without a right", catching(do_load, unnamed + 1), (uintptr_t)unnamed);
	tell("load of the kernel's", catching(do_load, (void *)BY_MACHINE(0xffffffff81000000, 0xffff800008000000,
									 0xffffffff80000000)),
	     BY_MACHINE(0, 0xffff800008000000, 0xffffffff80000000));
	tell("load of no address", catching(do_load, (void *)0x0123456789abcdef), 0);
	tell("call of no address", catching(do_call, (void *)0x0123456789abcdec), 0);
	if (ftruncate(file, 100))
		return;
	char *mapped = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	tell("within a file", catching(do_load, mapped + 101), (uintptr_t)mapped);
	tell("behind a file", catching(do_load, mapped + size + 3), (uintptr_t)mapped);
	long wrong = write(1, (char *)16, 4);
	say("write of what is not there: %s", outcome(wrong));
	wrong = syscall(SYS_getcwd, page + size, 100);
	say("system call into what is read only: %s", outcome(wrong));
	wrong = syscall(SYS_getcwd, page + 2 * size - 1, 100);
	say("system call across the end: %s", outcome(wrong));
}

/* Instructions between two labels each, so that the address can be compared. Left out is what QEMU 7.2 or Unicorn does
 * otherwise than the architecture says: the error code of `int n` and mdccsr_el0 (QEMU); rdrand without its bit in CPUID
 * and ports without a right to them, jumps to odd addresses and ldar of one on arm64, and counters other than the time on riscv64 (Unicorn). */
#define INSTRUCTION(name, text)                                                                                    \
	extern char name##_begin[];                                                                                \
	__asm__(".text\n.balign 8\n" #name "_begin:\n" text "\n" BY_MACHINE("ret", "ret", "ret"));                 \
	static void do_##name(void *unused)                                                                        \
	{                                                                                                          \
		(void)unused;                                                                                      \
		((void (*)(void))name##_begin)();                                                                  \
	}
#define TELL(name) tell_instruction(#name, catching(do_##name, NULL), (uintptr_t)name##_begin)

static void tell_instruction(const char *what, struct caught caught, uintptr_t begin)
{
	if (!caught.signal)
		say("%s: runs", what);
	else if (caught.address - begin < 64)
		say("%s: signal %d code %d address +%lu at +%lu error %#lx", what, caught.signal, caught.code,
		    caught.address - begin, caught.pc - begin, caught.error);
	else
		say("%s: signal %d code %d address %s at +%lu error %#lx", what, caught.signal, caught.code,
		    caught.address >> 32 ? "elsewhere" : "low", caught.pc - begin, caught.error);
}

#if defined __x86_64__
INSTRUCTION(ud2, "nop\nud2")
INSTRUCTION(ud1, "ud1 %eax, %eax")
INSTRUCTION(lock_nop, ".byte 0xf0, 0x90")
INSTRUCTION(too_long, ".byte 0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x90")
INSTRUCTION(hlt, "hlt")
INSTRUCTION(cli, "cli")
INSTRUCTION(rdmsr, "rdmsr")
INSTRUCTION(wrmsr, "wrmsr")
INSTRUCTION(read_cr0, "mov %cr0, %rax")
INSTRUCTION(read_dr7, "mov %db7, %rax")
INSTRUCTION(invlpg, "invlpg (%rsp)")
INSTRUCTION(swapgs, "swapgs")
INSTRUCTION(rdpmc, "xor %ecx, %ecx\nrdpmc")
INSTRUCTION(int3, "nop\nint3")
INSTRUCTION(int_3, "int $3")
INSTRUCTION(int_4, "int $4")
INSTRUCTION(icebp, "nop\n.byte 0xf1")
INSTRUCTION(into_missing, ".byte 0xce")
INSTRUCTION(divide, "xor %ecx, %ecx\nmov $1, %eax\ncltd\nidiv %ecx")
INSTRUCTION(divide_most, "mov $-1, %ecx\nmov $0x80000000, %eax\ncltd\nidiv %ecx")
INSTRUCTION(divide_byte, "mov $1, %cl\nmov $0x1234, %ax\ndiv %cl")
INSTRUCTION(vaddps, "vaddps %ymm0, %ymm1, %ymm2")
INSTRUCTION(zmm, ".byte 0x62,0xf1,0x74,0x48,0x58,0xd0")
INSTRUCTION(monitor, "monitor")
INSTRUCTION(vmcall, "vmcall")
INSTRUCTION(bad_segment, "mov $0x1234, %eax\nmov %eax, %es")
INSTRUCTION(null_stack_segment, "xor %eax, %eax\nmov %eax, %ss")
INSTRUCTION(bad_far_return, "push $0x1233\npush $0\nlretq")
INSTRUCTION(x87, "fninit\nmovw $0x360, -2(%rsp)\nfldcw -2(%rsp)\nfld1\nfldz\nfdivrp\nfwait\nfninit")
INSTRUCTION(x87_masked, "fninit\nfld1\nfldz\nfdivrp\nfwait\nfninit")
INSTRUCTION(ltr, "ltr %ax")
INSTRUCTION(clts, "clts")
INSTRUCTION(sysret, "sysretq")
INSTRUCTION(iret_wrong, "push $0\npush $0\npush $0\npush $0\npush $0\niretq")

static void instructions(void)
{
	TELL(ud2), TELL(ud1), TELL(lock_nop), TELL(too_long), TELL(hlt), TELL(cli);
	TELL(rdmsr), TELL(wrmsr), TELL(read_cr0), TELL(read_dr7), TELL(invlpg), TELL(swapgs), TELL(rdpmc);
	TELL(int3), TELL(int_3), TELL(int_4), TELL(icebp), TELL(into_missing);
	TELL(divide), TELL(divide_most), TELL(divide_byte), TELL(vaddps), TELL(zmm), TELL(monitor);
	TELL(vmcall), TELL(bad_segment), TELL(null_stack_segment), TELL(bad_far_return);
	TELL(x87), TELL(x87_masked), TELL(ltr), TELL(clts), TELL(sysret), TELL(iret_wrong);
}
#elif defined __aarch64__
INSTRUCTION(udf, "nop\n.inst 0x00000000")
INSTRUCTION(udf_7, ".inst 0x00000007")
INSTRUCTION(all_ones, ".inst 0xffffffff")
INSTRUCTION(brk_0, "nop\nbrk #0")
INSTRUCTION(brk_1000, "brk #1000")
INSTRUCTION(brk_65535, "brk #65535")
INSTRUCTION(hlt, "hlt #3")
INSTRUCTION(hvc, ".inst 0xd4000002")
INSTRUCTION(smc, ".inst 0xd4000003")
INSTRUCTION(eret, "eret")
INSTRUCTION(daifset, "msr daifset, #2")
INSTRUCTION(read_daif, "mrs x0, daif")
INSTRUCTION(read_sctlr, "mrs x0, sctlr_el1")
INSTRUCTION(write_ttbr, "msr ttbr0_el1, x0")
INSTRUCTION(read_midr, "mrs x0, midr_el1")
INSTRUCTION(read_mpidr, "mrs x0, mpidr_el1")
INSTRUCTION(read_pfr0, "mrs x0, id_aa64pfr0_el1")
INSTRUCTION(read_revidr, "mrs x0, revidr_el1")
INSTRUCTION(read_unnamed, "mrs x0, s3_3_c15_c2_0")
INSTRUCTION(read_pmccntr, "mrs x0, pmccntr_el0")
INSTRUCTION(read_cntp, "mrs x0, cntp_ctl_el0")
INSTRUCTION(read_cntv, "mrs x0, cntv_ctl_el0")
INSTRUCTION(read_cntpct, "mrs x0, cntpct_el0")
INSTRUCTION(read_mdscr, "mrs x0, mdscr_el1")
INSTRUCTION(tlbi, "tlbi vmalle1")
INSTRUCTION(ic_iallu, "ic iallu")
INSTRUCTION(dc_ivac, "mov x0, sp\ndc ivac, x0")
INSTRUCTION(at_s1e0r, "at s1e0r, x0")
INSTRUCTION(wfi, "wfi")
INSTRUCTION(wfe, "sevl\nwfe")
INSTRUCTION(sve, ".inst 0x04bf5000")
INSTRUCTION(sve_ptrue, ".inst 0x2518e3e0")
INSTRUCTION(ldadd, ".inst 0xb82003e0")
INSTRUCTION(fp16, ".inst 0x1ee02820")
INSTRUCTION(pacia, "mov x9, x30\npaciasp\nautiasp\nmov x30, x9")
INSTRUCTION(bti, "hint #36")
INSTRUCTION(pacga, ".inst 0x9ac03000")
INSTRUCTION(dcps1, ".inst 0xd4a00001")
INSTRUCTION(setend_like, ".inst 0xd500401f")
INSTRUCTION(svc_wrong, "mov x9, x8\nmov x8, #10000\nsvc #77\nmov x8, x9")
INSTRUCTION(stack_odd, "mov x1, sp\nsub x0, x1, #1\nmov sp, x0\nldr x2, [sp]\nmov sp, x1")
INSTRUCTION(exclusive_odd, "sub x0, sp, #33\nldxr x1, [x0]")
INSTRUCTION(exclusive_odd_store, "sub x0, sp, #33\nstlxr w2, x1, [x0]")
INSTRUCTION(divide, "mov x0, #1\nmov x1, #0\nsdiv x0, x0, x1")
INSTRUCTION(dczid, "mrs x0, dczid_el0")
INSTRUCTION(ctr, "mrs x0, ctr_el0")
INSTRUCTION(nzcv, "mrs x0, nzcv\nmsr nzcv, x0")
INSTRUCTION(tpidrro_write, "msr tpidrro_el0, x0")
INSTRUCTION(zva_of_nothing, "mov x0, #64\ndc zva, x0")
INSTRUCTION(civac_of_nothing, "mov x0, #72\ndc civac, x0")
INSTRUCTION(ivau_of_nothing, "mov x0, #72\nic ivau, x0")
INSTRUCTION(prefetch_of_nothing, "mov x0, #72\nprfm pldl1keep, [x0]")
INSTRUCTION(pair_of_nothing, "mov x0, #72\nldp x1, x2, [x0], #16")
INSTRUCTION(vector_of_nothing, "mov x0, #72\nst1 {v0.2d, v1.2d}, [x0]")

static void instructions(void)
{
	TELL(udf), TELL(udf_7), TELL(all_ones), TELL(brk_0), TELL(brk_1000), TELL(brk_65535), TELL(hlt), TELL(hvc);
	TELL(smc), TELL(eret), TELL(daifset), TELL(read_daif), TELL(read_sctlr), TELL(write_ttbr), TELL(read_midr);
	TELL(read_mpidr), TELL(read_pfr0), TELL(read_revidr), TELL(read_unnamed), TELL(read_pmccntr), TELL(read_cntp);
	TELL(read_cntv), TELL(read_cntpct), TELL(read_mdscr), TELL(tlbi), TELL(ic_iallu);
	TELL(dc_ivac), TELL(at_s1e0r), TELL(wfi), TELL(wfe), TELL(sve), TELL(sve_ptrue), TELL(ldadd), TELL(fp16);
	TELL(pacia), TELL(bti), TELL(pacga), TELL(dcps1), TELL(setend_like), TELL(svc_wrong), 
	TELL(stack_odd), TELL(exclusive_odd), TELL(exclusive_odd_store), TELL(divide), TELL(dczid);
	TELL(ctr), TELL(nzcv), TELL(tpidrro_write), TELL(zva_of_nothing), TELL(civac_of_nothing);
	TELL(ivau_of_nothing), TELL(prefetch_of_nothing), TELL(pair_of_nothing), TELL(vector_of_nothing);
}
#else
INSTRUCTION(zeros, ".option push\n.option norvc\nnop\n.option pop\n.half 0")
INSTRUCTION(ones, ".word 0xffffffff")
INSTRUCTION(ebreak, "nop\n.word 0x00100073")
INSTRUCTION(c_ebreak, "nop\n.half 0x9002")
INSTRUCTION(read_mstatus, "csrr a0, mstatus")
INSTRUCTION(read_sstatus, "csrr a0, sstatus")
INSTRUCTION(write_satp, "csrw satp, zero")
INSTRUCTION(write_cycle, "csrw cycle, zero")
INSTRUCTION(write_time, "csrw time, zero")
INSTRUCTION(read_time, "rdtime a0")
INSTRUCTION(read_vlenb, "csrr a0, 0xc22")
INSTRUCTION(read_seed, "csrrw a0, 0x015, zero")
INSTRUCTION(read_fcsr, "frcsr a0\nfscsr a0")
INSTRUCTION(sret, "sret")
INSTRUCTION(mret, ".word 0x30200073")
INSTRUCTION(wfi, "wfi")
INSTRUCTION(sfence, "sfence.vma")
INSTRUCTION(vector, ".word 0x0d0572d7")
INSTRUCTION(vector_load, ".word 0x02057087")
INSTRUCTION(half, ".word 0x0420f153")
INSTRUCTION(fence_i, "fence.i")
INSTRUCTION(pause, ".word 0x0100000f")
INSTRUCTION(rounding, ".word 0x0220d153")
INSTRUCTION(rounding_dynamic, "li a0, 5\nfsrm a1, a0\n.word 0x0220f153\nfsrm a1")
INSTRUCTION(divide, "li a0, 1\ndiv a0, a0, zero")
INSTRUCTION(reserved_odd, "addi a0, sp, -33\nlr.d a1, (a0)")
INSTRUCTION(conditional_odd, "addi a0, sp, -33\nsc.d a2, a1, (a0)")
INSTRUCTION(atomic_odd, "addi a0, sp, -33\namoadd.w a1, zero, (a0)")
INSTRUCTION(reserved_of_nothing, "li a0, 64\nlr.d a1, (a0)")
INSTRUCTION(conditional_of_nothing, "li a0, 64\nsc.d a2, a1, (a0)")
INSTRUCTION(atomic_of_nothing, "li a0, 64\namoadd.d a1, zero, (a0)")
INSTRUCTION(load_odd_of_nothing, "li a0, 67\nld a1, (a0)")
INSTRUCTION(float_of_nothing, "li a0, 64\nfld ft0, (a0)")
INSTRUCTION(c_load_of_nothing, "li a0, 64\n.half 0x6108")

static void instructions(void)
{
	TELL(zeros), TELL(ones), TELL(ebreak), TELL(c_ebreak), TELL(read_mstatus), TELL(read_sstatus);
	TELL(write_satp), TELL(write_cycle), TELL(write_time), TELL(read_time);
	TELL(read_vlenb), TELL(read_seed), TELL(read_fcsr), TELL(sret), TELL(mret), TELL(wfi);
	TELL(sfence), TELL(vector), TELL(vector_load), TELL(half), TELL(fence_i), TELL(pause), TELL(rounding);
	TELL(rounding_dynamic), TELL(divide), TELL(reserved_odd), TELL(conditional_odd), TELL(atomic_odd);
	TELL(reserved_of_nothing), TELL(conditional_of_nothing), TELL(atomic_of_nothing), TELL(load_odd_of_nothing);
	TELL(float_of_nothing), TELL(c_load_of_nothing);
}
#endif

#define MISALIGNED(type)                                                                                           \
	for (int offset = -(int)sizeof(type); offset <= 8; offset++) {                                             \
		type value;                                                                                        \
		memcpy(&value, middle + offset, sizeof value);                                                     \
		is_right &= *(volatile type *)(middle + offset) == value;                                          \
		*(volatile type *)(middle + offset) = value;                                                       \
	}

/* Every width at every place around the border of two pages. */
static void misaligned(void)
{
	size = sysconf(_SC_PAGESIZE);
	char *middle = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int is_right = 1;

	middle += size;
	for (int i = -32; i < 32; i++)
		middle[i] = i * 37;
	MISALIGNED(uint16_t)
	MISALIGNED(uint32_t)
	MISALIGNED(uint64_t)
	MISALIGNED(float)
	unsigned sum = 0;
	for (int i = -32; i < 32; i++)
		sum = sum * 31 + (unsigned char)middle[i];
	say("right %d sum %#x", is_right, sum);
#if defined __x86_64__
	__asm__ volatile("lock incq -3(%0)" ::"r"(middle) : "memory");
	__asm__ volatile("movups -7(%0), %%xmm0\nmovups %%xmm0, -9(%0)" ::"r"(middle) : "memory", "xmm0");
#elif defined __aarch64__
	__asm__ volatile("ldr q0, [%0, #-7]\nstur q0, [%0, #-9]" ::"r"(middle - 0) : "memory", "v0");
#else
	__asm__ volatile("fld ft0, -3(%0)\nfsd ft0, -5(%0)" ::"r"(middle) : "memory", "ft0");
#endif
	for (int i = -32; i < 32; i++)
		sum = sum * 31 + (unsigned char)middle[i];
	say("wide %#x", sum);
}

static volatile int repaired;

static void repair(int number, siginfo_t *information, void *context)
{
	(void)number, (void)context;
	repaired++;
	mprotect((void *)((uintptr_t)information->si_addr & -size), size, PROT_READ | PROT_WRITE);
}

/* A handler mends what the instruction faulted for, and it runs again. */
static void repairs(void)
{
	struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
	enum { PAGES = 16 };

	size = sysconf(_SC_PAGESIZE);
	sigaction(SIGSEGV, &action, NULL);
	char *many = mmap(NULL, PAGES * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < PAGES; i++)
		many[i * size + i] = i;
	say("stores %d", repaired);
	mprotect(many, PAGES * size, PROT_READ);
	for (int i = 1; i < PAGES; i++) /* each across a border */
		*(volatile uint64_t *)(many + i * size - 4) = i;
	say("stores %d", repaired);
	mprotect(many, PAGES * size, PROT_NONE);
	memset(many + 100, 7, 3 * size);
	say("memset %d", repaired);
	mprotect(many, PAGES * size, PROT_NONE);
	int sum = 0;
	for (int i = 0; i < 4 * size; i += 64)
		sum += many[i];
	say("loads %d sum %d", repaired, sum);
}

const struct part fault_parts[] = {
	{"accesses", accesses}, {"instructions", instructions}, {"misaligned", misaligned}, {"repairs", repairs}, {0}};
