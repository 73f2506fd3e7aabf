/*
 * Static probes, written as FreeBSD's SDT macros are:
 *
 *     SDT_PROVIDER_DEFINE(provider);
 *     SDT_PROBE_DEFINE1(provider, module, function, name, "type of the argument");
 *     SDT_PROBE1(provider, module, function, name, argument);
 *
 * A place of a probe is a nop, and a record of it in a note that is not loaded: where the nop is, provider, name, and
 * where the argument is at that moment as size@operand, in the form of systemtap's <sys/sdt.h>. The definition adds what
 * a note cannot say, the types, as FreeBSD's structures in linker sets. Nobody who does not trace pays more than the nop.
 */
#ifndef SDT_H
#define SDT_H

struct sdt_provider {
    const char *name;
    void *prov_entry[2];
    unsigned long id;
    int sdt_refs;
};

struct sdt_probe {
    int version; /* the size of this structure */
    const struct sdt_provider *prov;
    void *probe_entry[2];
    void *argtype_list[2];
    const char *mod;
    const char *func;
    const char *name;
    int id;
    int n_args;
    void *sdtp_lf;
};

struct sdt_argtype {
    int ndx;
    const char *type;
    const char *xtype;
    void *argtype_entry[2];
    const struct sdt_probe *probe;
};

#define SDT_SET(set, symbol)                                                                                           \
    static const void *const set##_##symbol __attribute__((section("set_" #set), used)) = &symbol

#define SDT_PROVIDER_DEFINE(provider) static const struct sdt_provider sdt_provider_##provider = {.name = #provider}

#define SDT_PROBE_DEFINE1(provider, module, function, symbol, argument)                                                \
    static const struct sdt_probe sdt_##provider##_##module##_##function##_##symbol = {                                \
        .version = sizeof(struct sdt_probe),                                                                           \
        .prov = &sdt_provider_##provider,                                                                              \
        .mod = #module,                                                                                                \
        .func = #function,                                                                                             \
        .name = #symbol,                                                                                               \
        .n_args = 1,                                                                                                   \
    };                                                                                                                 \
    static const struct sdt_argtype sdta_##provider##_##module##_##function##_##symbol##0 = {                          \
        .ndx = 0,                                                                                                      \
        .type = argument,                                                                                              \
        .probe = &sdt_##provider##_##module##_##function##_##symbol,                                                   \
    };                                                                                                                 \
    SDT_SET(sdt_probes_set, sdt_##provider##_##module##_##function##_##symbol);                                        \
    SDT_SET(sdt_argtypes_set, sdta_##provider##_##module##_##function##_##symbol##0)

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
