/* A snapshot is written once for each name, and changes nothing of the run. @image: kernel arm64 */
/* @options: --console /dev/null */
#pragma D option quiet
#pragma D option destructive
fbt::fibonacci:entry /arg0 > 5/ { snapshot(strjoin("/dev/", "null")); @[arg0] = count(); }
fbt::fibonacci:entry /arg0 == 7/ { snapshot("/dev/null"); }
