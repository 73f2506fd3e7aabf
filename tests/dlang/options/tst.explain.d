/*
 * What became of each clause: told hit by hit, or counted where it fires. Reasons are told where there are some.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option explain
#pragma D option quiet

fbt::fibonacci:entry { @calls[probefunc] = count(); }
fbt::hash_bytes:entry /caller == 0/ { @empty = count(); }
END { printa("%s %@d\n", @calls); }
