/* %p is for pointers and integers. */
BEGIN { printf("%p", "a"); }
