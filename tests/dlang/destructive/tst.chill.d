/* chill() takes time, and is what makes the clock go on within a clause. */
#pragma D option quiet
#pragma D option destructive
BEGIN { t = timestamp; chill(2000000); printf("%d\n", timestamp - t); }
BEGIN { printf("%d\n", timestamp - t); exit(0); }
