/* A process that makes three more threads, each of which ends at once, and ends with them; without a library. */
#if defined __x86_64__
__asm__(".globl _start\n_start: mov $3, %ebx\n"
        "1: mov $56, %eax\n mov $0x50f00, %edi\n xor %esi, %esi\n syscall\n" /* clone() */
        " test %eax, %eax\n jnz 2f\n mov $60, %eax\n xor %edi, %edi\n syscall\n"
        "2: dec %ebx\n jnz 1b\n mov $231, %eax\n mov $3, %edi\n syscall\n");
#elif defined __aarch64__
__asm__(".globl _start\n_start: mov x19, #3\n"
        "1: mov x8, #220\n mov x0, #0x0f00\n movk x0, #5, lsl #16\n mov x1, #0\n svc 0\n"
        " cbnz x0, 2f\n mov x8, #93\n svc 0\n"
        "2: subs x19, x19, #1\n b.ne 1b\n mov x8, #94\n mov x0, #3\n svc 0\n");
#else
__asm__(".globl _start\n_start: li s0, 3\n"
        "1: li a7, 220\n li a0, 0x50f00\n li a1, 0\n ecall\n"
        " bnez a0, 2f\n li a7, 93\n ecall\n"
        "2: addi s0, s0, -1\n bnez s0, 1b\n li a7, 94\n li a0, 3\n ecall\n");
#endif
