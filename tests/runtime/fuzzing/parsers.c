/* Three parsers with a planted bug each, which only an input of a certain form reaches. */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

/* "KR", then records of a type, a length and so many bytes. The length of the last one may be missing. */
__attribute__((noinline)) int parse_records(const u8 *data, u64 size)
{
	u64 at = 2;
	int sum = 0;

	if (size < 2 || data[0] != 'K' || data[1] != 'R')
		return -1;
	while (at < size) {
		u64 length = data[at + 1];

		if (at + 2 + length > size)
			return -2;
		for (u64 i = 0; i < length; i++)
			sum += data[at] ^ data[at + 2 + i];
		at += 2 + length;
	}
	return sum;
}

static const int values[4] = {2, 3, 5, 7};

/* "set NUMBER": which of the values. Nobody checks that there is such a value. */
__attribute__((noinline)) int parse_command(const char *text)
{
	u64 number = 0;

	for (int i = 0; i < 4; i++)
		if (text[i] != "set "[i])
			return -1;
	for (text += 4; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (*text - '0');
	if (*text)
		return -2;
	return values[number];
}

static u32 word_at(const u8 *data)
{
	return (u32)data[0] << 24 | (u32)data[1] << 16 | (u32)data[2] << 8 | data[3];
}

/* A magic number, the size of all, how many bytes a table has, and where it is, which nobody checks. */
__attribute__((noinline)) int parse_header(const u8 *data, u64 size)
{
	u32 start, length;

	if (size < 16 || word_at(data) != 0xfeedc0de)
		return -1;
	length = word_at(data + 8);
	start = word_at(data + 12);
	if (length > size || !length)
		return -2;
	return data[start] + data[start + length - 1];
}

/* Spins until a byte ends it, which may not be there. */
__attribute__((noinline)) int find_end(const u8 *data, u64 size)
{
	u64 at = 0;

	while (size && data[at] != 0xff)
		at = (at + 1) % size;
	return at;
}

int start(void)
{
	return parse_records((const u8 *)"KR", 2) + parse_command("set 1") + parse_header((const u8 *)"", 0);
}
