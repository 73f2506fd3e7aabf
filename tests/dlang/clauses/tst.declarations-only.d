/* @status: 1 */
/* Declarations alone enable no probe. */
int x;
