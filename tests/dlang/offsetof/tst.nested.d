/* Offsets of members after padding. */
#pragma D option quiet

struct s { char c; long l; short h; char d[3]; };

BEGIN { printf("%d %d %d %d\n", offsetof(struct s, l), offsetof(struct s, h), offsetof(struct s, d), sizeof (struct s)); exit(0); }
