#include "deeper.h"
#define INNER (DEEPER + 1)
