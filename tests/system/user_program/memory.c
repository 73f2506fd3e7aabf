/* Memory: mappings that move and change, faults that another thread serves, and code that is written while it runs. */
#include "program.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>

static long size;

static unsigned checksum(const volatile unsigned char *bytes, long length)
{
	unsigned sum = 0;

	for (long i = 0; i < length; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

static void touch(void *address)
{
	*(volatile char *)address += 1;
}

static void mappings(void)
{
	size = sysconf(_SC_PAGESIZE);
	unsigned char *one = mmap(NULL, 8 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *other = mmap(NULL, 64 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (long i = 0; i < 8 * size; i++)
		one[i] = i * 7 + (i >> 8);
	say("before %#x", checksum(one, 8 * size));
	unsigned char *moved = mremap(one, 8 * size, 32 * size, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	say("moved %d: %#x and %#x", moved == other, checksum(moved, 8 * size), checksum(moved + 8 * size, 24 * size));
	struct caught end = catching(touch, one + 5);
	say("where it was: signal %d code %d address %ld", end.signal, end.code, (long)(end.address - (uintptr_t)one));
	say("smaller %d", mremap(moved, 32 * size, 4 * size, 0) == moved);
	end = catching(touch, moved + 4 * size);
	say("behind: signal %d code %d", end.signal, end.code);
	unsigned char *grown = mremap(moved, 4 * size, 40 * size, 0);
	say("grown where it is %d", grown == moved);
	madvise(moved, 2 * size, MADV_DONTNEED);
	say("without two pages %#x", checksum(moved, 4 * size));
	mprotect(moved + size, size, PROT_READ);
	end = catching(touch, moved + size);
	say("read only: signal %d code %d address %ld", end.signal, end.code,
	    (long)(end.address - (uintptr_t)moved));
	mprotect(moved + size, size, PROT_READ | PROT_WRITE);
	end = catching(touch, moved + size);
	say("again: signal %d value %d", end.signal, moved[size]);
	volatile int *common = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*common = *own = 1;
	if (!fork()) {
		*common = *own = 2;
		_exit(0);
	}
	wait(NULL);
	say("common %d own %d", *common, *own);
	int wrong = munmap((void *)(moved + 1), size);
	say("unmap of an odd address: %s", outcome(wrong));
	long key = syscall(SYS_pkey_alloc, 0, 0);
	say("protection key: %s", outcome(key));
}

static int file;
static char *watched;

static void *serve(void *unused)
{
	static char content[65536];
	struct uffd_msg message;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		if (read(file, &message, sizeof message) != sizeof message)
			break;
		long offset = message.arg.pagefault.address - (uintptr_t)watched;
		say("fault at page %ld, flags %#llx", offset / size, message.arg.pagefault.flags);
		uint64_t page = message.arg.pagefault.address & -size;
		memset(content, 'a' + i, size);
		struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)content, .len = size};
		struct uffdio_zeropage zero = {.range = {page, size}};
		long done = i == 1 ? ioctl(file, UFFDIO_ZEROPAGE, &zero) : ioctl(file, UFFDIO_COPY, &copy);
		say("served: %s", outcome(done));
	}
	return NULL;
}

static void served_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;

	size = sysconf(_SC_PAGESIZE);
	file = syscall(SYS_userfaultfd, O_CLOEXEC);
	say("userfaultfd: %s", outcome(file));
	if (file < 0)
		return;
	int done = ioctl(file, UFFDIO_API, &api);
	say("api: %s, features %#llx, ioctls %#llx", outcome(done), api.features, api.ioctls);
	watched = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)watched, 4 * size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	done = ioctl(file, UFFDIO_REGISTER, &range);
	say("register: %s, ioctls %#llx", outcome(done), range.ioctls);
	pthread_create(&thread, NULL, serve, NULL);
	int first = ((volatile char *)watched)[size + 5], second = ((volatile char *)watched)[9];
	((volatile char *)watched)[3 * size] = 1;
	pthread_join(thread, NULL);
	say("found %d %d %d %d", first, second, watched[3 * size], watched[3 * size + 1]);
}

/* A function of a few instructions that returns a number. */
static long make_function(unsigned char *at, int number)
{
#if defined __x86_64__
	unsigned char code[] = {0xb8, number, number >> 8, 0, 0, 0xc3};
#elif defined __aarch64__
	uint32_t code[] = {0x52800000 | (number & 0xffff) << 5, 0xd65f03c0};
#else
	uint32_t code[] = {(uint32_t)(number & 0x7ff) << 20 | 0x513, 0x00008067};
#endif
	memcpy(at, code, sizeof code);
	return sizeof code;
}

static int call(void *at)
{
	return ((int (*)(void))at)();
}

static void written_code(void)
{
	size = sysconf(_SC_PAGESIZE);
	unsigned char *code = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int is_right = 1;

	for (int i = 0; i < 500; i++) {
		long length = make_function(code, i);
		__builtin___clear_cache((char *)code, (char *)code + length);
		is_right &= call(code) == i;
	}
	say("changed: %d", is_right);
	unsigned char *across = code + size - BY_MACHINE(3, 4, 4);
	for (int i = 0; i < 100; i++) {
		long length = make_function(across, i);
		__builtin___clear_cache((char *)across, (char *)across + length);
		is_right &= call(across) == i;
	}
	say("across two pages: %d", is_right);
	for (int i = 0; i < 100; i++) {
		mprotect(code, size, PROT_READ | PROT_WRITE);
		long length = make_function(code, i + 1);
		__builtin___clear_cache((char *)code, (char *)code + length);
		mprotect(code, size, PROT_READ | PROT_EXEC);
		is_right &= call(code) == i + 1;
	}
	say("with changing rights: %d", is_right);
	int shared = syscall(SYS_memfd_create, "code", 0);
	if (ftruncate(shared, size))
		return;
	unsigned char *to_write = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	unsigned char *to_run = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, shared, 0);
	for (int i = 0; i < 200; i++) {
		long length = make_function(to_write + 64, i);
		__builtin___clear_cache((char *)to_write + 64, (char *)to_write + 64 + length);
		__builtin___clear_cache((char *)to_run + 64, (char *)to_run + 64 + length);
		is_right &= call(to_run + 64) == i;
	}
	say("by another address: %d", is_right);
	for (int i = 0; i < 50; i++) {
		int again = syscall(SYS_memfd_create, "page", 0);
		if (ftruncate(again, size))
			return;
		unsigned char *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
		long length = make_function(fresh + 64, i + 7);
		__builtin___clear_cache((char *)fresh + 64, (char *)fresh + 64 + length);
		mmap(to_run, size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, again, 0);
		__builtin___clear_cache((char *)to_run + 64, (char *)to_run + 64 + length);
		is_right &= call(to_run + 64) == i + 7;
		munmap(fresh, size);
		close(again);
	}
	say("another page at the address: %d", is_right);
}

static unsigned char *patched;
static volatile int phase;

static void *patch(void *unused)
{
	(void)unused;
	for (int i = 1; i <= 50; i++) {
		while (phase != 2 * i - 1)
			usleep(100);
		long length = make_function(patched, i);
		__builtin___clear_cache((char *)patched, (char *)patched + length);
		phase = 2 * i;
	}
	return NULL;
}

static void code_of_another_thread(void)
{
	pthread_t thread;
	int right = 0;

	size = sysconf(_SC_PAGESIZE);
	patched = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	make_function(patched, 0);
	__builtin___clear_cache((char *)patched, (char *)patched + 16);
	pthread_create(&thread, NULL, patch, NULL);
	for (int i = 1; i <= 50; i++) {
		right += call(patched) == i - 1;
		phase = 2 * i - 1;
		while (phase != 2 * i)
			usleep(100);
		right += call(patched) == i;
	}
	pthread_join(thread, NULL);
	say("right %d", right);
}

#if defined __x86_64__
/* No barrier is needed here: the next instruction, and the rest of this one's block, change at once. */
static void code_that_changes_itself(void)
{
	size = sysconf(_SC_PAGESIZE);
	unsigned char *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* mov byte [rip + 1], dil (the operand's lowest byte);  mov eax, 0x11223344;  ret */
	static const unsigned char next[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb8, 0x44, 0x33, 0x22, 0x11, 0xc3};
	int right = 0;

	memcpy(code, next, sizeof next);
	for (int i = 0; i < 100; i++)
		right += ((int (*)(int))(void *)code)(i) == (0x11223300 | i);
	say("the next instruction: %d", right);
	/* a loop whose body a store in it changes: mov eax, 0; add eax, 1; add byte [rip - 7], 1; dec ecx; jnz; ret */
	static const unsigned char loop[] = {0xb9, 10, 0, 0, 0, 0x31, 0xc0, 0x83, 0xc0, 1, 0x80, 0x05, 0xf8, 0xff,
					     0xff, 0xff, 1, 0xff, 0xc9, 0x75, 0xf2, 0xc3};
	memcpy(code, loop, sizeof loop);
	say("a loop: %d", call(code));
	/* rep movsb over the instructions that follow it */
	unsigned char copy[] = {0xf3, 0xa4, 0xb8, 1, 0, 0, 0, 0xc3}, with[] = {0xb8, 2, 0, 0, 0, 0xc3};
	memcpy(code, copy, sizeof copy);
	int result;
	void *from = with, *to = code + 2;
	long length = sizeof with;
	__asm__ volatile("call *%4" : "=a"(result), "+S"(from), "+D"(to), "+c"(length) : "r"(code) : "memory");
	say("copied over: %d", result);
}
#else
static void code_that_changes_itself(void)
{
}
#endif

const struct part memory_parts[] = {
	{"mappings", mappings}, {"served", served_faults}, {"code", written_code}, {"other", code_of_another_thread},
	{"itself", code_that_changes_itself}, {0}};
