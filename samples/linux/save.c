#include <fcntl.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int save(int file, const char *text)
{
    return write(file, text, strlen(text)) > 0 && fdatasync(file) == 0;
}

int main(void)
{
    int file = open("/var/tmp/log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int count = 0; count < 200; count++)
        save(file, "a line of the log\n");
}
