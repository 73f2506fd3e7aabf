/* %k is for stacks. */
BEGIN { printf("%k", 1); }
