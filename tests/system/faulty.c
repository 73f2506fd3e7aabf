/* A process that lowers its priority by setpriority(), and reads from where there is no memory; without a library. */
#if defined __x86_64__
__asm__(".globl _start\n_start: mov $141, %eax\n xor %edi, %edi\n xor %esi, %esi\n mov $7, %edx\n syscall\n"
        " mov 0x10, %rax\n");
#elif defined __aarch64__
__asm__(".globl _start\n_start: mov x8, #140\n mov x0, #0\n mov x1, #0\n mov x2, #7\n svc 0\n"
        " mov x0, #0x10\n ldr x0, [x0]\n");
#else
__asm__(".globl _start\n_start: li a7, 140\n li a0, 0\n li a1, 0\n li a2, 7\n ecall\n li a0, 0x10\n ld a0, 0(a0)\n");
#endif
