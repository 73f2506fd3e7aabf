/* A number is no pointer. */
BEGIN { copyout("a", 1, "size"); }
