/* What a machine says of itself to programs, and what only one of them has. */
#include "program.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

static void auxiliary(void)
{
	static const int all[] = {AT_PAGESZ, AT_CLKTCK, AT_HWCAP, AT_HWCAP2, AT_SECURE, AT_MINSIGSTKSZ, AT_FLAGS, AT_UID};
	struct utsname names;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		say("%d: %#lx", all[i], getauxval(all[i]));
	const char *platform = (const char *)getauxval(AT_PLATFORM);
	say("platform %s", platform ? platform : "none");
	uname(&names);
	say("%s %s %s", names.sysname, names.release, names.machine);
}

static void cpuinfo(void)
{
	char line[2048];
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && fgets(line, sizeof line, file)) {
		static const char *const changing[] = {"cpu MHz", "bogomips", "BogoMIPS", "bugs", "cache size", "flags", "isa", "hart isa", "marchid", "mimpid"}; /* the models differ */
		int is_changing = 0;
		for (int i = 0; i < 10; i++)
			is_changing |= !strncmp(line, changing[i], strlen(changing[i]));
		line[strcspn(line, "\n")] = 0;
		for (char *at = line; !is_changing && *at;) { /* long lines in pieces */
			char *end = strlen(at) > 100 ? strchr(at + 100, ' ') : NULL;
			if (end)
				*end = 0;
			say("%s", at);
			at = end ? end + 1 : at + strlen(at);
		}
	}
}

static void own_mappings(void)
{
	char line[512], last[512] = "";
	FILE *file = fopen("/proc/self/maps", "r");

	while (file && fgets(line, sizeof line, file)) {
		char rights[8] = "", name[256] = "";
		sscanf(line, "%*s %7s %*s %*s %*s %255s", rights, name);
		if (name[0] == '[' && strcmp(name, last))
			say("%s %s", rights, name);
		strcpy(last, name);
	}
}

#if defined __x86_64__
#include <asm/ldt.h>
#include <asm/prctl.h>
#include <sys/io.h>
#include <sys/prctl.h>

static void read_counter(void *value)
{
	unsigned low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	*(uint64_t *)value = (uint64_t)high << 32 | low;
}

static void read_counter_and_cpu(void *value)
{
	unsigned low, high, cpu;

	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(cpu));
	*(uint64_t *)value = cpu;
}

static void time_stamps(void)
{
	uint64_t first, second, cpu = 99;

	catching(read_counter, &first);
	catching(read_counter, &second);
	say("goes on %d", second >= first);
	struct caught end = catching(read_counter_and_cpu, &cpu);
	say("rdtscp: signal %d, a CPU %d", end.signal, cpu < 64);
	int done = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	end = catching(read_counter, &first);
	say("forbidden %d: signal %d code %d error %#lx", done, end.signal, end.code, end.error);
	end = catching(read_counter_and_cpu, &cpu);
	say("rdtscp: signal %d code %d error %#lx", end.signal, end.code, end.error);
	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	end = catching(read_counter, &first);
	say("allowed: signal %d", end.signal);
	long cannot = syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
	say("cpuid faults: %s", outcome(cannot));
}

static void read_fs(void *value)
{
	__asm__ volatile("rdgsbase %0" : "=r"(*(unsigned long *)value));
}

static void segments(void)
{
	static unsigned long cell = 0x1122334455667788;
	unsigned long base = 0, word = 0;

	long done = syscall(SYS_arch_prctl, ARCH_SET_GS, &cell);
	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	__asm__("mov %%gs:0, %0" : "=r"(word));
	say("gs: %s, same %d, %#lx", outcome(done), base == (unsigned long)&cell, word);
	struct caught end = catching(read_fs, &base);
	say("rdgsbase: signal %d", end.signal);
	struct user_desc what = {.entry_number = 0, .base_addr = 0, .limit = 0xfffff, .seg_32bit = 1,
				 .limit_in_pages = 1, .useable = 1};
	long table = syscall(SYS_modify_ldt, 1, &what, sizeof what);
	unsigned limit = 0;
	__asm__("lsl %1, %0" : "=r"(limit) : "r"(7));
	say("ldt: %s, limit %#x", outcome(table), limit);
	unsigned short kernel = 0, task = 0;
	__asm__ volatile("sldt %0" : "=r"(kernel));
	__asm__ volatile("str %0" : "=r"(task));
	say("sldt %d str %d", kernel != 0, task != 0);
	unsigned short code, stack;
	__asm__ volatile("mov %%cs, %0\nmov %%ss, %1" : "=r"(code), "=r"(stack));
	say("cs %#x ss %#x", code, stack);
}

/* Code of 32 bits in a low page: it adds, and returns by a far return. */
static void compatibility(void)
{
	static const unsigned char code[] = {0x40, 0x48, 0x83, 0xc0, 5, 0xcb}; /* inc eax; dec eax; add eax, 5; lret */
	unsigned char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long result = 37;

	memcpy(page, code, sizeof code);
	struct {
		unsigned offset;
		unsigned short selector;
	} __attribute__((packed)) *target = (void *)(page + 4096);
	target->offset = (unsigned)(uintptr_t)page;
	target->selector = 0x23;
	unsigned long low = (unsigned long)page + 65536 - 64;
	/* The far call pushes 32-bit words that the 32-bit return takes. */
	__asm__ volatile("mov %%rsp, %%r12\nmov %[low], %%rsp\nlcall *(%[to])\nmov %%r12, %%rsp"
			 : "+a"(result)
			 : [low] "r"(low), [to] "r"(target)
			 : "r12", "memory", "cc");
	say("result %ld", result);
	long number = 20;
	__asm__ volatile("int $0x80" : "+a"(number)::"memory", "r8", "r9", "r10", "r11");
	say("int 0x80: %d", number == getpid());
}

static void call_vsyscall(void *result)
{
	*(long *)result = ((long (*)(long *))0xffffffffff600400)(NULL);
}

static void read_vsyscall(void *result)
{
	*(long *)result = *(volatile long *)0xffffffffff600000;
}

static void fixed_page(void)
{
	long seconds = 0;
	struct caught end = catching(call_vsyscall, &seconds);

	say("time: signal %d, near %d", end.signal, time(NULL) - seconds <= 1);
	end = catching(read_vsyscall, &seconds);
	say("read: signal %d code %d error %#lx", end.signal, end.code, end.error);
}

static void clear_interrupts(void *unused)
{
	(void)unused;
	__asm__ volatile("cli\nsti");
}

static void privilege_of_ports(void)
{
	struct caught end = catching(clear_interrupts, NULL);

	say("without: signal %d", end.signal);
	int done = iopl(3);
	end = catching(clear_interrupts, NULL);
	say("iopl: %s signal %d", outcome(done), end.signal);
}

const struct part machine_parts[] = {
	{"auxiliary", auxiliary}, {"cpuinfo", cpuinfo}, {"maps", own_mappings},
	{"stamps", time_stamps}, {"segments", segments}, {"compatibility", compatibility}, {"fixed", fixed_page},
	{"ports", privilege_of_ports}, {0}};
#elif defined __aarch64__
#define READ(name) say(#name " %#lx", __extension__({ unsigned long value; __asm__ volatile("mrs %0, " #name : "=r"(value)); value; }))

static void identity(void)
{
	READ(midr_el1);
	READ(mpidr_el1);
	READ(revidr_el1);
	READ(id_aa64pfr0_el1);
	READ(id_aa64pfr1_el1);
	READ(id_aa64dfr0_el1);
	READ(id_aa64isar0_el1);
	READ(id_aa64isar1_el1);
	READ(id_aa64mmfr0_el1);
	READ(id_aa64mmfr1_el1);
	READ(id_aa64mmfr2_el1);
	READ(S3_0_C0_C4_4);
	READ(ctr_el0);
	READ(dczid_el0);
	READ(cntfrq_el0);
}

static void thread_registers(void)
{
	unsigned long value, before, first, second;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(before));
	__asm__ volatile("msr tpidr_el0, %1\nmov x8, #124\nsvc #0\nmrs %0, tpidr_el0\nmsr tpidr_el0, %2"
			 : "=&r"(value)
			 : "r"(0x123456789abcUL), "r"(before)
			 : "x0", "x8", "memory");
	say("kept %#lx", value);
	__asm__ volatile("mrs %0, cntvct_el0\nisb\nmrs %1, cntvct_el0" : "=r"(first), "=r"(second));
	say("counter goes on %d", second >= first);
	char line[256] __attribute__((aligned(64)));
	memset(line, 1, sizeof line);
	__asm__ volatile("dc zva, %0" ::"r"(line + 64) : "memory");
	int zeros = 0;
	for (int i = 0; i < 256; i++)
		zeros += !line[i];
	say("dc zva: %d", zeros);
}

const struct part machine_parts[] = {
	{"auxiliary", auxiliary}, {"cpuinfo", cpuinfo}, {"maps", own_mappings}, {"identity", identity},
	{"thread-registers", thread_registers}, {0}};
#else
struct probe {
	int64_t key;
	uint64_t value;
};

static void identity(void)
{
	for (int key = 0; key < 9; key++) {
		struct probe probe = {key, 0};
		long done = syscall(258, &probe, 1, 0, NULL, 0);
		if (key == 0 || key == 3) /* the others say which model it is, and what was measured */
			say("key %ld: %s %#lx", (long)probe.key, outcome(done), probe.value);
	}
	long flushed = syscall(259, 0, 0, 0);
	say("flush: %s", outcome(flushed));
}

const struct part machine_parts[] = {
	{"auxiliary", auxiliary}, {"cpuinfo", cpuinfo}, {"maps", own_mappings}, {"identity", identity}, {0}};
#endif
