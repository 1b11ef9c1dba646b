#include "../mpm88/kernel.c"
