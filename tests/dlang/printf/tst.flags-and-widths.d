/* Flags, widths and precisions of all kinds. */
#pragma D option quiet
BEGIN { printf("[%5.3d][%-6d][%+d][% d][%#x][%#o][%08d][%.0d]\n", 7, 7, 7, 7, 255, 8, -42, 0);
printf("[%c][%5c][%-5c][%C][%S]\n", 'a', 'b', 'c', '\n', "a\tb\"");
printf("[%10s][%-10s][%.2s][%10.2s][%*s][%-*s]\n", "abc", "abc", "abc", "abc", 6, "abc", 6, "abc");
printf("[%d][%u][%i][%x]\n", (char)-1, (char)-1, (unsigned char)255, (short)-1);
printf("[%hd][%hd][%ld][%lld]]\n", (short)-1, (short)-2, (long)-3, (long long)-4);
printf("[%'d][%'d]\n", 1234567, 12);
printf("[%p][%?x][%%][%5s]\n", 0x1234, 0x12, "");
printf("[%X][%o]]\n", 0xabc, 8); exit(0); }
