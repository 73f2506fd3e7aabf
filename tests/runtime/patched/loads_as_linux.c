/* A kernel that loads, initialises, calls and frees a module as Linux does, at two places one after the other: FIRST_n and
   INIT_n are the addresses of its functions, CORE_n and INIT_AREA_n those of its memory, SYMBOLS the rows of its symbol
   table. What it reports is for `fbt::report:entry`. */

#define NOINLINE __attribute__((noinline, noclone))

enum module_state { MODULE_STATE_LIVE, MODULE_STATE_COMING, MODULE_STATE_GOING };

struct module_layout {
	void *base;
	unsigned size, text_size;
};

struct mod_kallsyms {
	const char *symtab;
	unsigned num_symtab;
	const char *strtab;
};

struct module {
	enum module_state state;
	char name[56];
	int (*init)(void);
	struct module_layout core_layout, init_layout;
	struct mod_kallsyms *kallsyms;
};

extern const char core_1[], core_1_end[], init_1[], init_1_end[], symtab_1[], core_2[], core_2_end[], init_2[],
	init_2_end[], symtab_2[], strtab[];

NOINLINE void report(unsigned long value)
{
	asm volatile("" : : "r"(value));
}

NOINLINE void finish(void)
{
#if defined(__riscv)
	*(volatile unsigned *)0x100000 = 0x5555;
#elif defined(__aarch64__)
	register unsigned long function asm("x0") = 0x84000008;
	asm volatile("hvc #0" : "+r"(function));
#else
	asm volatile("outb %b0, $0xf4" : : "a"(0));
#endif
	for (;;)
		;
}

static void copy(char *to, const char *from, const char *end)
{
	while (from < end)
		*(volatile char *)to++ = *from++;
}

static void clear(struct module_layout *area)
{
	for (unsigned at = 0; at < area->size; at++)
		((volatile char *)area->base)[at] = 0;
}

NOINLINE int do_init_module(struct module *mod)
{
	int result = mod->init();

	mod->state = MODULE_STATE_LIVE;
	clear(&mod->init_layout);
	return result;
}

NOINLINE void free_module(struct module *mod)
{
	unsigned long sum = 0;

	for (unsigned at = 0; at < mod->core_layout.text_size; at++)
		sum = sum * 31 + ((volatile unsigned char *)mod->core_layout.base)[at];
	report(sum);
	mod->state = MODULE_STATE_GOING;
	clear(&mod->core_layout);
}

NOINLINE void use(struct module *mod, int (*first)(int), const char *core, const char *core_end, const char *init,
		  const char *init_end)
{
	mod->state = MODULE_STATE_COMING;
	copy(mod->core_layout.base, core, core_end);
	copy(mod->init_layout.base, init, init_end);
	mod->core_layout.size = mod->core_layout.text_size = core_end - core;
	mod->init_layout.size = mod->init_layout.text_size = init_end - init;
	report(do_init_module(mod));
	report(first(5));
	report(first(6));
	free_module(mod);
}

void start(void)
{
	struct mod_kallsyms symbols = { .num_symtab = SYMBOLS, .strtab = strtab };
	struct module module = { .name = "one", .kallsyms = &symbols };

	for (int turn = 0; turn < 3; turn++) {
		int at_first = turn != 1;

		symbols.symtab = at_first ? symtab_1 : symtab_2;
		module.core_layout.base = (void *)(at_first ? CORE_1 : CORE_2);
		module.init_layout.base = (void *)(at_first ? INIT_AREA_1 : INIT_AREA_2);
		module.init = (int (*)(void))(at_first ? INIT_1 : INIT_2);
		if (at_first)
			use(&module, (int (*)(int))FIRST_1, core_1, core_1_end, init_1, init_1_end);
		else
			use(&module, (int (*)(int))FIRST_2, core_2, core_2_end, init_2, init_2_end);
	}
	finish();
}

#define FILE(name) ".globl " #name ", " #name "_end\n" #name ": .incbin \"" #name ".bin\"\n" #name "_end:\n"
asm(".pushsection .rodata\n.balign 8\n" FILE(symtab_1) ".balign 8\n" FILE(symtab_2) FILE(strtab) FILE(core_1) FILE(init_1)
    FILE(core_2) FILE(init_2) ".popsection");
#if defined(__riscv)
asm(".globl _start\n_start: la sp, _start + 0x800000\nj start");
#elif defined(__aarch64__)
asm(".globl _start\n_start: adrp x0, _start + 0x800000\nmov sp, x0\nb start");
#else
asm(".globl _start\n_start: lea _start + 0x800000(%rip), %rsp\ncall start");
#endif
