/* basename(), dirname() and cleanpath(). */
#pragma D option quiet

BEGIN { printf("%s %s %s %s %s\n", basename("/a/b/"), dirname("/a/b/"), dirname("x"), cleanpath("/a/./b/../c"), basename("/")); exit(0); }
