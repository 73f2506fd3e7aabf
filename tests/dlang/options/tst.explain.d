/*
 * How hits of each clause and site are delivered: dispatched, or counted where they fire. Reasons are told if there are some.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option explain
#pragma D option quiet

fbt::fibonacci:entry { @calls[probefunc] = count(); }
fbt::hash_bytes:entry /caller == 0/ { @empty = count(); }
END { printa("%s %@d\n", @calls); }
