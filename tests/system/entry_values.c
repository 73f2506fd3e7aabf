/* Arguments of inlined copies (COPY) that the function around (OUT) does not keep: see test_entry_values.py. */
volatile long sink;

OUT void clobber(long a, long b) { sink = a * b; CLOBBER; }

COPY void work(long first, int second)
{
    sink = first + second; clobber(7, 8); sink = 3; clobber(5, 6); sink = 4;
}

OUT void holder(long first, int second) { work(first, second); sink = 9; }

/* How holder is called: constants, registers that are given back, memory of the caller, what the caller was given. */
OUT void constant(void) { holder(1111, -2222); sink = 1; }
OUT void saved(long value) { clobber(1, 2); holder(value, (int)value * 3 + 1); clobber(value, 2); sink = value; }
OUT void fill(long *values) { values[0] = 77; values[1] = 78; sink = 5; }
OUT long memory(void)
{
    long values[4];
    fill(values); holder((long)values, 12); fill(values);
    return values[1];
}
OUT void given(long value, int other) { holder(value + 5, other); sink = 1; }
OUT void given_twice(int value) { given(value, value); sink = 2; }

/* By tail calls, of which a caller sees nothing; by a pointer; by both. */
OUT void tail(long value, int other) { sink = value; holder(other, 44); }
OUT void tail_twice(long value) { sink = value; tail(value, 33); }
OUT void tail_given(long value, int other) { sink = 1; holder(value, other); }
OUT void indirect(void (*function)(long, int), long value)
{
    clobber(1, 2); function(value, 21); clobber((long)function, value);
}
OUT void through_tail(void (*function)(long, int)) { indirect(function, 91); sink = 2; }

/* What may have entered itself again by tail calls: nobody knows what it was given. */
OUT void ping(long value, int count);
OUT void pong(long value, int count) { sink = value; if (count) ping(value + 1, count - 1); }
OUT void ping(long value, int count) { work(value, count); sink = 1; pong(value + 2, count); }

/* A parameter that the compiler takes away: the call tells it all the same. */
COPY void note(long dead, int other) { sink = other; clobber(1, 2); sink = 3; clobber(other, 5); sink = 4; }
static __attribute__((noinline)) void used(long value, int other) { work(value, other); sink = other; }
static __attribute__((noinline)) void unused(long dead, int other) { note(dead, other); sink = other; }

struct pair { long low; long high; };
COPY void shape(struct pair pair, unsigned char small, unsigned long *pointer)
{
    sink = pair.low; clobber(1, 1); sink = small; clobber(2, 2); sink = 5;
}
OUT void shaped(struct pair pair, unsigned char small, unsigned long *pointer) { shape(pair, small, pointer); sink = 6; }
OUT void shapes(long value)
{
    struct pair pair = {value, 4};
    unsigned long local = 4;
    clobber(value, 1); shaped(pair, 200, &local); sink = local; clobber(value, 3);
}

/* Values that are computed from others and never are in a register. */
COPY void narrowed(short small, long wide, unsigned char tiny, long sum)
{
    if (small == 77) sink = 2;
    if (wide == 1234567) sink = 9;
    if (tiny == 7) sink = 3;
    clobber(3, 4);
    if (sum == 99) sink = 1;
    sink = 5; clobber(1, 3); sink = 7;
}
OUT void narrow(long value, int other)
{
    narrowed((short)value, (int)value, (unsigned char)(value + 3), (unsigned char)value + (long)other);
    clobber(value, other); sink = value + other;
}

void start(void)
{
    constant();
    saved(41); saved(-42);
    memory();
    given(51, 52); given_twice(-53);
    tail(61, 62); tail_twice(63); tail_given(64, 65);
    indirect(holder, 71); indirect(tail, 72); through_tail(holder);
    ping(81, 2);
    unused(91, 92); unused(93, 94); used(95, 96); used(97, 98);
    shapes(101);
    narrow(0x123456789abcdef0, -5);
    sink = 0;
}
