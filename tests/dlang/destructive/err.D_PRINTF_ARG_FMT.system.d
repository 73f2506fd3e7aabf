/* A command is a constant. */
BEGIN { system(execname); }
