/* Registers change at once, for the clauses after this one; where the CPU goes on is what was said last. */
/* @image: kernel arm64 */
/* @options: -q -w --console /dev/null */
fbt::fibonacci:entry /!n++/ { override(1); regs[R_X0] = 3; regs[R_X1] += 2; }
fbt::fibonacci:entry /n == 1/ { printf("%d %d\n", (int)arg0, regs[R_X1]++ == regs[R_X1] - 1); override(9); }
kinst::kmain: /n == 1/ { printf("%d\n", regs[R_X0]); exit(0); }
