/* A command's conversions want arguments. */
BEGIN { system("echo %d"); }
