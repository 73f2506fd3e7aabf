/* %f is for floating-point numbers. */
BEGIN { printf("%f", 1); }
