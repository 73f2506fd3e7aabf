/*
 * Static probes, named as FreeBSD's SDT macros name them: a nop, and a record of it in a note that is not loaded. The
 * record has the form of systemtap's <sys/sdt.h>: where the nop is, provider, name (__ is read as a dash), and where the
 * argument is at that moment as size@operand. Nobody who does not trace pays more than the nop.
 */
#ifndef SDT_H
#define SDT_H

/* clang-format off */
#define SDT_PROBE1(provider, module, function, name, argument)                                                         \
    __asm__ volatile("990: nop\n"                                                                                      \
                     "   .pushsection .note.stapsdt, \"\", %%note\n"                                                   \
                     "   .balign 4\n"                                                                                  \
                     "   .4byte 992f - 991f, 994f - 993f, 3\n"                                                         \
                     "991: .asciz \"stapsdt\"\n"                                                                       \
                     "992: .balign 4\n"                                                                                \
                     "993: .8byte 990b, _.stapsdt.base, 0\n"                                                           \
                     "   .asciz \"" #provider "\", \"" #name "\", \"%n[size]@%[value]\"\n"                             \
                     "994: .balign 4\n"                                                                                \
                     "   .popsection\n"                                                                                \
                     "   .ifndef _.stapsdt.base\n"                                                                     \
                     "   .pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n"                      \
                     "   .weak _.stapsdt.base\n"                                                                       \
                     "   .hidden _.stapsdt.base\n"                                                                     \
                     "_.stapsdt.base: .space 1\n"                                                                      \
                     "   .size _.stapsdt.base, 1\n"                                                                    \
                     "   .popsection\n"                                                                                \
                     "   .endif\n"                                                                                     \
                     : : [size] "n"(SDT_SIGN(argument) * (int)sizeof(argument)), [value] "nor"(argument))
/* clang-format on */

/* %n prints a number with the opposite sign: a size is negative where the type is signed. */
#define SDT_SIGN(argument) ((__typeof__(argument))-1 < (__typeof__(argument))1 ? 1 : -1)

#endif
