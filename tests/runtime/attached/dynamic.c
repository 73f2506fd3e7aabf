/* A program of the usual kind: the C library, main() with its arguments. */
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int weight(const char *word)
{
    return (int)strlen(word) * 3;
}

int main(int count, char **words)
{
    int sum = 0;
    for (int i = 1; i < count; i++)
        sum += weight(words[i]);
    printf("%d words weigh %d\n", count - 1, sum);
    return sum;
}
