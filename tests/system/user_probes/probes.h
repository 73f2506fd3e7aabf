/* Static probes as systemtap's macros leave them: a nop, and a note of where it and its arguments are. */
#ifndef PROBES_H
#define PROBES_H

/* Somebody traces a probe while its semaphore is not 0. */
#define SEMAPHORE(provider, name)                                                                                      \
    volatile unsigned short provider##_##name##_semaphore __attribute__((section(".probes"), used))

/* %n prints a number with the opposite sign: a size is negative where the type is signed. */
#define SIZE(value) ((__typeof__(value))-1 < (__typeof__(value))1 ? 1 : -1) * (int)sizeof(value)

/* clang-format off */
#define NOTE(provider, name, semaphore, arguments)                                                                     \
    "990: nop\n"                                                                                                       \
    "   .pushsection .note.stapsdt, \"\", %%note\n"                                                                    \
    "   .balign 4\n"                                                                                                   \
    "   .4byte 992f - 991f, 994f - 993f, 3\n"                                                                          \
    "991: .asciz \"stapsdt\"\n"                                                                                        \
    "992: .balign 4\n"                                                                                                 \
    "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                                                \
    "   .asciz \"" #provider "\", \"" #name "\", \"" arguments "\"\n"                                                  \
    "994: .balign 4\n"                                                                                                 \
    "   .popsection\n"                                                                                                 \
    "   .ifndef _.stapsdt.base\n"                                                                                      \
    "   .pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n"                                       \
    "   .weak _.stapsdt.base\n"                                                                                        \
    "   .hidden _.stapsdt.base\n"                                                                                      \
    "_.stapsdt.base: .space 1\n"                                                                                       \
    "   .size _.stapsdt.base, 1\n"                                                                                     \
    "   .popsection\n"                                                                                                 \
    "   .endif\n"
/* clang-format on */

#define PROBE2(provider, name, semaphore, a, b)                                                                        \
    __asm__ volatile(NOTE(provider, name, semaphore, "%n[a_size]@%[a_value] %n[b_size]@%[b_value]")                    \
                     :                                                                                                 \
                     : [a_size] "n"(SIZE(a)), [a_value] "nor"(a), [b_size] "n"(SIZE(b)), [b_value] "nor"(b))
#define PROBE6(provider, name, semaphore, a, b, c, d, e, f)                                                            \
    __asm__ volatile(NOTE(provider, name, semaphore,                                                                   \
                          "%n[a_size]@%[a_value] %n[b_size]@%[b_value] %n[c_size]@%[c_value] "                         \
                          "%n[d_size]@%[d_value] %n[e_size]@%[e_value] %n[f_size]@%[f_value]")                         \
                     :                                                                                                 \
                     : [a_size] "n"(SIZE(a)), [a_value] "nor"(a), [b_size] "n"(SIZE(b)), [b_value] "nor"(b),           \
                       [c_size] "n"(SIZE(c)), [c_value] "nor"(c), [d_size] "n"(SIZE(d)), [d_value] "nor"(d),           \
                       [e_size] "n"(SIZE(e)), [e_value] "nor"(e), [f_size] "n"(SIZE(f)), [f_value] "nor"(f))

#endif
