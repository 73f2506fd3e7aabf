/* %a is for addresses. */
BEGIN { printf("%a", "kmain"); }
