/* A process that sends itself a datagram, lowers its priority, and reads from where there is no memory. */
#if defined __x86_64__
enum { SOCKET = 41, BIND = 49, SENDTO = 44, RECVFROM = 45, SETPRIORITY = 141 };
#define CALL "syscall"
#define REGISTERS number __asm__("rax"), a __asm__("rdi"), b __asm__("rsi"), c __asm__("rdx"), d __asm__("r10"), \
    e __asm__("r8"), f __asm__("r9")
#elif defined __aarch64__
enum { SOCKET = 198, BIND = 200, SENDTO = 206, RECVFROM = 207, SETPRIORITY = 140 };
#define CALL "svc 0"
#define REGISTERS number __asm__("x8"), a __asm__("x0"), b __asm__("x1"), c __asm__("x2"), d __asm__("x3"), \
    e __asm__("x4"), f __asm__("x5")
#else
enum { SOCKET = 198, BIND = 200, SENDTO = 206, RECVFROM = 207, SETPRIORITY = 140 };
#define CALL "ecall"
#define REGISTERS number __asm__("a7"), a __asm__("a0"), b __asm__("a1"), c __asm__("a2"), d __asm__("a3"), \
    e __asm__("a4"), f __asm__("a5")
#endif

static long call(long which, long first, const volatile void *second, long third, long fourth, const void *fifth,
                 long sixth)
{
    register long REGISTERS;
    number = which;
    a = first, b = (long)second, c = third, d = fourth, e = (long)fifth, f = sixth;
#if defined __x86_64__
    __asm__ volatile(CALL : "+r"(number) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "rcx", "r11", "memory");
    return number;
#else
    __asm__ volatile(CALL : "+r"(a) : "r"(number), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "memory");
    return a;
#endif
}

void _start(void)
{
    static const unsigned char here[16] = {2, 0, 0x13, 0x88, 127, 0, 0, 1}; /* AF_INET, port 5000 */
    static const char text[] = "a datagram";
    char got[sizeof text];
    long socket = call(SOCKET, 2, (void *)2, 0, 0, 0, 0); /* SOCK_DGRAM */
    call(BIND, socket, here, sizeof here, 0, 0, 0);
    call(SENDTO, socket, text, sizeof text, 0, here, sizeof here);
    call(RECVFROM, socket, got, sizeof got, 0, 0, 0);
    call(SETPRIORITY, 0, 0, 7, 0, 0, 0);
    *(volatile long *)0x10 = 1;
}
