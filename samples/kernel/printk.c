/* The console: formats and writes one character at a time, one message at a time. */
#include "cpu.h"

static struct spinlock console_lock;

static void put(char character)
{
    if (character == '\n')
        console_putc('\r');
    console_putc(character);
}

static void put_string(const char *string)
{
    while (*string != '\0')
        put(*string++);
}

/* Digits come out last first: print the higher ones by recursion. */
static noinline void put_number(u64 value, unsigned base, int width)
{
    if (value >= base || width > 1)
        put_number(value / base, base, width - 1);
    put("0123456789abcdef"[value % base]);
}

static void put_signed(int64_t value)
{
    if (value < 0) {
        put('-');
        value = -value;
    }
    put_number((u64)value, 10, 0);
}

static void put_formatted(const char *format, va_list arguments)
{
    for (; *format != '\0'; format++) {
        int width = 0;
        bool is_long = false;

        if (*format != '%') {
            put(*format);
            continue;
        }
        for (format++; *format >= '0' && *format <= '9'; format++)
            width = width * 10 + *format - '0';
        for (; *format == 'l'; format++)
            is_long = true;
        switch (*format) {
        case 'c':
            put((char)va_arg(arguments, int));
            break;
        case 'd':
            put_signed(is_long ? va_arg(arguments, long) : va_arg(arguments, int));
            break;
        case 'p':
            put_string("0x");
            put_number(va_arg(arguments, u64), 16, 16);
            break;
        case 's':
            put_string(va_arg(arguments, const char *));
            break;
        case 'u':
        case 'x':
            put_number(is_long ? va_arg(arguments, u64) : va_arg(arguments, u32), *format == 'u' ? 10 : 16, width);
            break;
        default: /* %% and what we do not know */
            put(*format);
        }
    }
}

void printk(const char *format, ...)
{
    va_list arguments;
    unsigned long flags = spin_lock_irqsave(&console_lock);

    va_start(arguments, format);
    put_formatted(format, arguments);
    va_end(arguments);
    spin_unlock_irqrestore(&console_lock, flags);
}

void panic(const char *format, ...)
{
    va_list arguments;

    irq_save();
    va_start(arguments, format);
    put_string("panic: "); /* without the lock: this CPU may hold it */
    put_formatted(format, arguments);
    put('\n');
    va_end(arguments);
    power_off();
}
