/* The function returns at once, with this value: none of its instructions runs, and so no return of it fires. */
/* @image: kernel */
/* @options: -q -w --console /dev/null */
fbt::fibonacci:entry /arg0 == 5/ { override(77); n++; }
fbt::fibonacci:return /arg1 == 77/ { again++; }
END { printf("%d %d\n", n, again > 0); }
