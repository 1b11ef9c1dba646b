#include "../stencil/kernel.c"
