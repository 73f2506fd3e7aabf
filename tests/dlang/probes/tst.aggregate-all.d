/* Each firing of each function of a recursion.
   @image: kernel
   @options: -q --console /dev/null */
fbt::fibonacci:entry { @n[probefunc] = count(); @q = lquantize(arg0, 0, 13, 1); }
fbt::fibonacci:return { @r[arg1 < 2 ? "small" : "large"] = count(); }
