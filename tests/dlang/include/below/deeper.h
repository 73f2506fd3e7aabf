#define DEEPER 40
