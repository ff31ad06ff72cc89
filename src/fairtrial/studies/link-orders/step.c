/* One of many small functions, each an object of its own: compile with -DNUMBER=1, 2, … */
#include <stdint.h>

#define NAMED(number) step_##number
#define NAME(number) NAMED(number)

uint64_t NAME(NUMBER)(uint64_t state)
{
    uint64_t sum = 0;
    for (int turn = 0; turn < 3 + NUMBER % 5; turn++) {
        state ^= state << (7 + NUMBER % 6);
        state ^= state >> 9;
        if (state & (1u << NUMBER % 7))
            sum += state * (2 * NUMBER + 1);
        else
            sum ^= state >> NUMBER % 11;
    }
    return state + (sum & 0xff);
}
