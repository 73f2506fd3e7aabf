/* @options: -C

   With the preprocessor, comments of C++ are none of D; those of C go away, also among words. */
#pragma D option quiet

#define NOTHING /* nothing */
BEGIN { printf("%d\n", 1 NOTHING + /* two */ 2); exit(0); }
