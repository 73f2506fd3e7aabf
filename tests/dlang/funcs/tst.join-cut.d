/* strjoin() of what has room. */
#pragma D option quiet

BEGIN { printf("%s %d\n", strjoin("ab", strjoin("cd", "ef")), strlen(strjoin("", ""))); exit(0); }
