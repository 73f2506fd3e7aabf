#ifndef GUARDED
#define GUARDED 1
typedef int guarded_t;
#endif
