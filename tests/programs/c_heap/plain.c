#include <stdlib.h>

void *leak_2000(void) {
    char *block = malloc(2000);
    block[0] = 1;
    return block;
}
