/* Declared keys are counted where they are used. */
self int a[int, int, int, int, int, int, int, int, int];
BEGIN { self->a[1, 2, 3, 4, 5, 6, 7, 8, 9]++; }
